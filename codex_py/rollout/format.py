"""The rollout format: one JSON object a line, `{"timestamp","ordinal","type","payload"}`.

Field names and values are those of Codex CLI 0.169, so that either program resumes what the other wrote. The
functions that end in `_payload` make the payloads of the records a session writes; their docstrings name the record.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import as_object, encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import TextElement
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy, WorkspaceWrite, approval_payload, mode_of
from codex_py.protocol.usage import RequestCost, Spending, TokenUsage
from codex_py.protocol.value import Value

# A record of this program's own: the output of a call whose place in the history has not come yet. Codex CLI skips it.
EARLY_OUTPUT: Final = "early_output"
EARLY_INPUT: Final = "early_input"
# What one request cost, and the session with its agents so far.
REQUEST_COST: Final = "request_cost"
# Another model went on with a turn.
MODEL_FALLBACK: Final = "model_fallback"


class GitState(Value):
    """The state of the repository when the session began; None for a value that could not be read."""

    commit_hash: str | None = None
    branch: str | None = None
    repository_url: str | None = None

    def to_payload(self) -> dict[str, str]:
        fields = {"commit_hash": self.commit_hash, "branch": self.branch, "repository_url": self.repository_url}
        return {key: value for key, value in fields.items() if value is not None}


class SubagentSource(Value):
    """Which session started an agent, how many stand above it, what it is called, and its role, or empty."""

    parent_thread_id: str
    depth: int
    nickname: str
    role: str = ""

    def to_payload(self) -> dict[str, Any]:
        """The `source` of the agent's `session_meta`."""
        spawned = {
            "parent_thread_id": self.parent_thread_id,
            "depth": self.depth,
            "agent_path": None,
            "agent_nickname": self.nickname,
            "agent_role": self.role or None,
        }
        return {"subagent": {"thread_spawn": spawned}}

    @classmethod
    def from_payload(cls, source: object) -> SubagentSource | None:
        """Read `to_payload` back; None for a source that is no agent a session has started."""
        spawned = as_object(as_object(as_object(source).get("subagent")).get("thread_spawn"))
        parent = _text(spawned.get("parent_thread_id"))
        if not parent:
            return None
        name, role = _text(spawned.get("agent_nickname")), _text(spawned.get("agent_role"))
        return cls(parent, _count(spawned.get("depth")), name or "", role or "")


class SessionMeta(Value):
    """The first record of a file. `git` is None outside a repository.

    A fork names its parent and takes over the parent's records with an ordinal below `forked_from_ordinal_exclusive`.
    With `subagent` it is the session of an agent.
    """

    id: str
    timestamp: str
    cwd: str
    originator: str
    cli_version: str
    source: str
    model_provider: str
    base_instructions: str = ""
    git: GitState | None = None
    forked_from_id: str | None = None
    forked_from_ordinal_exclusive: int | None = None
    subagent: SubagentSource | None = None

    def to_payload(self) -> dict[str, Any]:
        """The payload of `session_meta`."""
        agent = self.subagent
        linked = {} if agent is None else {"parent_thread_id": agent.parent_thread_id}
        named = {} if agent is None else {"thread_source": "subagent", "agent_nickname": agent.nickname}
        fork = {
            "forked_from_id": self.forked_from_id,
            "forked_from_ordinal_exclusive": self.forked_from_ordinal_exclusive,
        }
        return {
            "session_id": self.id,
            "id": self.id,
            **{key: value for key, value in fork.items() if value is not None},
            **linked,
            "timestamp": self.timestamp,
            "cwd": self.cwd,
            "originator": self.originator,
            "cli_version": self.cli_version,
            "source": self.source if agent is None else agent.to_payload(),
            **named,
            **({"agent_role": agent.role} if agent and agent.role else {}),
            "model_provider": self.model_provider,
            "base_instructions": {"text": self.base_instructions},
            **({} if self.git is None else {"git": self.git.to_payload()}),
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> SessionMeta:
        """Read a `session_meta` payload of either program; what is missing or odd counts as empty."""
        git = as_object(payload.get("git"))
        base = as_object(payload.get("base_instructions")).get("text") or payload.get("instructions")
        source = payload.get("source")
        before = payload.get("forked_from_ordinal_exclusive")
        return cls(
            id=_text(payload.get("id")) or "",
            timestamp=_text(payload.get("timestamp")) or "",
            cwd=_text(payload.get("cwd")) or "",
            originator=_text(payload.get("originator")) or "",
            cli_version=_text(payload.get("cli_version")) or "",
            # Codex CLI writes an object for what has more to tell, such as `{"subagent":{…}}`.
            source=_text(source) or next(iter(as_object(source)), ""),
            model_provider=_text(payload.get("model_provider")) or "",
            base_instructions=_text(base) or "",
            git=GitState(*(_text(git.get(key)) for key in ("commit_hash", "branch", "repository_url")))
            if "git" in payload
            else None,
            forked_from_id=_text(payload.get("forked_from_id")),
            forked_from_ordinal_exclusive=before if isinstance(before, int) else None,
            subagent=SubagentSource.from_payload(source),
        )


class StoredSession(Value):
    """A session as its file describes it at the last record.

    `items` is the history to send, after the last compaction; `window` counts the compactions. `usage` is the sum over
    the session, `last_usage` that of its last response. `size` (bytes) and `ends_with_newline` describe the file as it
    was read. `pending_outputs` has, by call, the outputs that a killed run had not yet added to the history, `unheard`
    the user's messages to a run that was killed while it compacted for them, and `spending` the cost of the session.
    """

    path: Path
    meta: SessionMeta
    items: tuple[ResponseItem, ...]
    usage: TokenUsage
    last_usage: TokenUsage
    turn_context: dict[str, Any] | None
    world_state: dict[str, Any] | None
    window: int
    next_ordinal: int
    size: int
    ends_with_newline: bool
    warnings: tuple[str, ...]
    pending_outputs: dict[str, ResponseItem]
    covered: int = 0
    work_state: dict[str, Any] | None = None
    unheard: tuple[ResponseItem, ...] = ()
    spending: Spending = Spending()


def encode_line(ordinal: int, record_type: str, payload: bytes, *, timestamp: str) -> bytes:
    """One record with its newline. `payload` is an encoded JSON object; it is the last key, so that a reader can
    slice it out."""
    head = f'{{"timestamp":"{timestamp}","ordinal":{ordinal},"type":"{record_type}","payload":'
    return b"".join((head.encode(), payload, b"}\n"))


def rollout_path(home: Path, thread_id: str, *, when: str) -> Path:
    """Where the file of a thread belongs that began at `when`, a time stamp as `protocol.ids.timestamp` makes it."""
    day, second = when[:10], when[:19].replace(":", "-")
    return home / "sessions" / day.replace("-", "/") / f"rollout-{second}-{thread_id}.jsonl"


def turn_context_payload(
    turn_id: str,
    cwd: Path,
    *,
    model: str,
    reasoning: Mapping[str, Any],
    approval: ApprovalPolicy,
    sandbox: SandboxPolicy,
) -> dict[str, Any]:
    """`turn_context`: the settings of a turn. `reasoning` is the request's own object (`effort`, `summary`)."""
    effort = reasoning.get("effort")
    return {
        "turn_id": turn_id,
        "cwd": str(cwd),
        "approval_policy": approval_payload(approval),
        "sandbox_policy": _sandbox_payload(sandbox),
        "model": model,
        **({} if effort is None else {"effort": effort}),
        "summary": reasoning.get("summary") or "none",
    }


def world_state_payload(state: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    """`world_state`: what the model was sent; the whole of it, or a JSON merge patch (RFC 7396) to it."""
    return {"full": full, "state": dict(state)}


def compacted_payload(
    message: str, items: Sequence[ResponseItem], *, window: int, work_state: Mapping[str, Any] | None = None
) -> bytes:
    """`compacted`: from here on the history is `items`. `window` counts the compactions, this one included.

    `work_state`, the plan, files and skills so far, is an addition of this program.
    """
    history = b",".join(item.encoded for item in items)
    work = b"" if work_state is None else b',"work_state":' + encode_json(dict(work_state))
    summary = encode_json(message)
    return b'{"message":%b,"replacement_history":[%b],"window_number":%d%b}' % (summary, history, window, work)


def task_started_payload(turn_id: str, *, window: int | None) -> dict[str, Any]:
    """`event_msg`: a turn begins. `window` is the model's context window in tokens."""
    return {
        "type": "task_started",
        "turn_id": turn_id,
        "started_at": int(time.time()),
        "model_context_window": window,
        "collaboration_mode_kind": "default",
    }


def user_message_payload(text: str, elements: Sequence[TextElement] = (), *, task: str = "") -> dict[str, Any]:
    """`event_msg`: a message of the user, which session pickers show. `task` is an addition of this program."""
    shortened = [
        {"byte_range": {"start": element.start, "end": element.end}, "placeholder": element.placeholder}
        for element in elements
    ]
    named = {"task": task} if task else {}
    return {
        "type": "user_message",
        "message": text,
        "images": [],
        "local_images": [],
        "text_elements": shortened,
        **named,
    }


def agent_message_payload(text: str) -> dict[str, Any]:
    """`event_msg`: a message of the model."""
    return {"type": "agent_message", "message": text}


def token_count_payload(last: TokenUsage, total: TokenUsage, *, window: int | None) -> dict[str, Any]:
    """`event_msg`: tokens of the last response and of the whole session."""
    counts = {
        "total_token_usage": _usage_payload(total),
        "last_token_usage": _usage_payload(last),
        "model_context_window": window,
    }
    return {"type": "token_count", "info": counts, "rate_limits": None}


def request_cost_payload(request: RequestCost, session: Spending) -> dict[str, Any]:
    """`request_cost`, a record of this program's own: one request, and what the session has cost with it."""
    return {
        "provider": request.provider,
        "model": request.model,
        "kind": request.kind,
        "usage": _usage_payload(request.usage),
        "cost": request.spending.to_record(),
        "session_cost": session.to_record(),
    }


def fallback_payload(turn_id: str, *, before: tuple[str, str], after: tuple[str, str], reason: str) -> dict[str, Any]:
    """`model_fallback`, a record of this program's own: which model went on with a turn, and why."""
    models = {
        name: dict(zip(("provider", "model"), pair, strict=True)) for name, pair in (("from", before), ("to", after))
    }
    return {"turn_id": turn_id, **models, "reason": reason}


def task_complete_payload(turn_id: str, last_message: str | None, *, duration_ms: int) -> dict[str, Any]:
    """`event_msg`: a turn was completed."""
    return {
        "type": "task_complete",
        "turn_id": turn_id,
        "last_agent_message": last_message,
        "completed_at": int(time.time()),
        "duration_ms": duration_ms,
    }


def turn_aborted_payload(turn_id: str, *, reason: str = "interrupted") -> dict[str, Any]:
    """`event_msg`: a turn was stopped."""
    return {"type": "turn_aborted", "turn_id": turn_id, "reason": reason}


def rewound_payload(turns: int, live: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """`event_msg`: the last `turns` turns of the user no longer count. `live` is an addition of this program: the
    ranges of ordinals that count from here on, so that a later rewind can also bring turns back."""
    return {"type": "thread_rolled_back", "num_turns": turns, "live": [list(pair) for pair in live]}


def error_payload(message: str) -> dict[str, Any]:
    """`event_msg`: a turn failed."""
    return {"type": "error", "message": message}


def read_usage(counts: object) -> TokenUsage:
    """The token counts of a `token_count` or `token_usage_record`; what is missing or odd counts as 0."""
    fields = as_object(counts)
    return TokenUsage(
        _count(fields.get("input_tokens")),
        _count(fields.get("cached_input_tokens")),
        _count(fields.get("output_tokens")),
        _count(fields.get("reasoning_output_tokens")),
        _count(fields.get("total_tokens")),
        _count(fields.get("cache_write_input_tokens")),
    )


def _usage_payload(usage: TokenUsage) -> dict[str, int]:
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_input_tokens": usage.cache_write_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_output_tokens,
        "total_tokens": usage.total_tokens,
    }


def _sandbox_payload(sandbox: SandboxPolicy) -> dict[str, Any]:
    if not isinstance(sandbox, WorkspaceWrite):
        return {"type": mode_of(sandbox)}
    return {
        "type": mode_of(sandbox),
        "writable_roots": [str(root) for root in sandbox.writable_roots],
        # The format knows no loopback-only network.
        "network_access": sandbox.network_access is True,
        "exclude_tmpdir_env_var": sandbox.exclude_tmpdir_env_var,
        "exclude_slash_tmp": sandbox.exclude_slash_tmp,
        **({"git": True} if sandbox.git else {}),
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

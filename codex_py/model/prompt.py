"""The body of a model request. Keys have a fixed order, and what grows comes as bytes that are ready to send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Literal

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.value import Value

SUBAGENT: Final = "collab_spawn"


class ParentTurn(Value):
    """The turn that has started an agent. `session_id` and `root_turn_id` are of the session at the top, a user's."""

    thread_id: str
    turn_id: str
    session_id: str
    root_turn_id: str


class Prompt(Value):
    """Everything that decides the request body, and nothing else.

    `input` holds encoded items, `tools` an encoded array (`b"[]"` for none), `output_schema` an encoded JSON schema.
    `window` counts the compactions of the thread so far. `kind` says what the request is for; one for the compaction
    endpoint asks for no stream and stores nothing by itself. `parent` is there in a request of an agent's.
    `max_output_tokens` is where the answer must end; OpenAI is not sent it.
    """

    model: str
    instructions: str
    input: Sequence[bytes]
    tools: bytes
    thread_id: str
    turn_id: str
    window: int = 0
    parallel_tool_calls: bool = True
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    service_tier: str | None = None
    output_schema: bytes | None = None
    max_output_tokens: int | None = None
    kind: Literal["turn", "compaction", "compaction_endpoint"] = "turn"
    parent: ParentTurn | None = None

    @property
    def session_id(self) -> str:
        """The session of the user's that the thread belongs to."""
        return self.parent.session_id if self.parent else self.thread_id

    @property
    def root_turn_id(self) -> str:
        """The turn of the user's that the turn belongs to."""
        return self.parent.root_turn_id if self.parent else self.turn_id

    @property
    def window_id(self) -> str:
        """The thread and how often it was compacted, as the server gets them."""
        return f"{self.thread_id}:{self.window}"


def encode_body(prompt: Prompt, installation_id: str = "") -> bytes:
    """The request as JSON. The body of a longer history extends that of a shorter one up to the end of `input`."""
    head, tail = _head(prompt), b"]" + _tail(prompt, installation_id)
    if not prompt.input:
        return head + tail
    # A long history is copied once, into the body.
    items = list(prompt.input)
    items[0] = head + items[0]
    items[-1] += tail
    return b",".join(items)


def turn_metadata(prompt: Prompt, installation_id: str = "") -> str:
    """What the server is sent about the turn, as JSON; nothing of the files of this machine or its user."""
    above = prompt.parent
    spawned = {"subagent_kind": "thread_spawn", "thread_source": "subagent"}
    fields = {
        **({"installation_id": installation_id} if installation_id else {}),
        "session_id": prompt.session_id,
        "thread_id": prompt.thread_id,
        "agent_name": "/root",
        "turn_id": prompt.turn_id,
        "window_id": prompt.window_id,
        "window_number": prompt.window,
        "request_kind": "turn" if prompt.kind == "turn" else "compaction",
        **({"parent_thread_id": above.thread_id, "parent_turn_id": above.turn_id} if above else {}),
        "root_turn_id": prompt.root_turn_id,
        **(spawned if above else {"thread_source": "user"}),
        "model": prompt.model,
        **({"reasoning_effort": prompt.effort} if prompt.effort else {}),
    }
    # A header takes ASCII only, and a model may be called anything.
    return json.dumps(fields, separators=(",", ":"))


def _head(prompt: Prompt) -> bytes:
    fields: dict[str, Any] = {"model": prompt.model, "instructions": prompt.instructions}
    if prompt.kind != "compaction_endpoint":
        fields["stream"] = True
    if prompt.service_tier:
        fields["service_tier"] = prompt.service_tier
    return encode_json(fields)[:-1] + b',"input":['


def _tail(prompt: Prompt, installation_id: str) -> bytes:
    to_model = prompt.kind != "compaction_endpoint"
    before: dict[str, Any] = {"tool_choice": "auto"} if to_model else {}
    before["parallel_tool_calls"] = prompt.parallel_tool_calls
    if reasoning := _reasoning(prompt):
        before["reasoning"] = reasoning
    if to_model:
        if prompt.max_output_tokens is not None:
            before["max_output_tokens"] = prompt.max_output_tokens
        before["store"] = False
        before["include"] = ["reasoning.encrypted_content"]
    before["prompt_cache_key"] = prompt.thread_id
    if not to_model:
        return b"".join((b',"tools":', prompt.tools, b",", encode_json(before)[1:-1], _text(prompt), b"}"))
    above = prompt.parent
    # Sorted, so that two bodies differ only where their contents do.
    metadata = {
        **({"parent_turn_id": above.turn_id} if above else {}),
        "root_turn_id": prompt.root_turn_id,
        "session_id": prompt.session_id,
        "thread_id": prompt.thread_id,
        "turn_id": prompt.turn_id,
        **({"x-codex-installation-id": installation_id} if installation_id else {}),
        **({"x-codex-parent-thread-id": above.thread_id} if above else {}),
        "x-codex-turn-metadata": turn_metadata(prompt, installation_id),
        "x-codex-window-id": prompt.window_id,
        **({"x-openai-subagent": SUBAGENT} if above else {}),
    }
    return b"".join(
        (
            b',"tools":',
            prompt.tools,
            b",",
            encode_json(before)[1:-1],
            _text(prompt),
            b',"client_metadata":',
            encode_json(metadata),
            b"}",
        )
    )


def _reasoning(prompt: Prompt) -> dict[str, str]:
    # A summary of `none` is this program's word for not asking; the API has no such value.
    wanted = {"effort": prompt.effort, "summary": None if prompt.summary == "none" else prompt.summary}
    return {key: value for key, value in wanted.items() if value}


def _text(prompt: Prompt) -> bytes:
    fragments: list[bytes] = []
    if prompt.verbosity:
        fragments.append(b'"verbosity":' + encode_json(prompt.verbosity))
    if prompt.output_schema is not None:
        form = b'{"type":"json_schema","strict":true,"schema":%b,"name":"codex_output_schema"}'
        fragments.append(b'"format":' + form % prompt.output_schema)
    return b',"text":{' + b",".join(fragments) + b"}" if fragments else b""

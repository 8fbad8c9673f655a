"""The summary of a stored session for lists, read from both ends of its file without the middle."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.readable import is_host_text
from codex_py.protocol.usage import Spending
from codex_py.rollout.files import is_archived, thread_of
from codex_py.rollout.format import REQUEST_COST, SessionMeta, read_usage
from codex_py.rollout.records import (
    MAX_LINE,
    RolloutRecord,
    decode_record,
    open_stored,
    read_head,
    read_meta,
    user_text,
)
from codex_py.text.files import read_lines, read_lines_backwards

MAX_PROMPT: Final = 1000
_FRONT_BYTES: Final = 4 * 1024 * 1024
_BACK_BYTES: Final = 64 * 1024 * 1024
_MAX_LINE: Final = 1024 * 1024
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z")


class SessionSummary(NamedTuple):
    """A stored session. `updated` is the time stamp of its last record, `cwd` the directory of its last turn, `tokens`
    its total; `base` is the session whose file a fork reads, `parent` the one that started it as an agent called
    `nickname`. `originator` and `version` are those of the program that created it. Unknown texts are empty. `file` is
    the path as text, because lists have thousands of them and use few.
    """

    file: str
    id: str
    cwd: str
    created: str
    updated: str
    first_prompt: str
    tokens: int
    model: str
    provider: str
    source: str
    branch: str
    forked_from: str
    base: str
    parent: str = ""
    originator: str = ""
    version: str = ""
    effort: str = ""
    commit: str = ""
    repository: str = ""
    nickname: str = ""
    role: str = ""
    requests: int = 0
    usd: float = 0.0
    unpriced: int = 0
    name: str = ""

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def cost(self) -> Spending:
        """The cost with agents; `requests` is 0 if it is not known."""
        return Spending(self.requests, self.tokens, self.usd, self.unpriced)

    @property
    def archived(self) -> bool:
        return is_archived(self.path)


def read_summary(path: Path) -> SessionSummary | None:
    """The summary of a file; None when it holds no session or cannot be read."""
    try:
        with open_stored(path) as stream:
            return _summary(path, stream)
    except (UserError, OSError):
        return None


class DamagedSession(NamedTuple):
    """A file whose first line is damaged, so that it cannot be resumed; `cwd` may be empty."""

    path: Path
    updated: str
    cwd: str


def read_damaged(path: Path) -> DamagedSession | None:
    """A session whose header is damaged; None for a file that never held a session."""
    try:
        with open_stored(path) as stream:
            first = stream.readline(MAX_LINE)
            if not first.endswith(b"\n"):
                return None
            updated, _, context, _ = _newest(stream.fileno())
            written = datetime.fromtimestamp(os.fstat(stream.fileno()).st_mtime, UTC).isoformat()
            return DamagedSession(path, updated or _stamp(written), _text(context.get("cwd")))
    except (UserError, OSError):
        return None


def _summary(path: Path, stream: BinaryIO) -> SessionSummary | None:
    meta = read_meta(path, stream.readline(MAX_LINE))
    updated, tokens, context, cost = _newest(stream.fileno())
    return SessionSummary(
        file=str(path),
        id=thread_of(path) or meta.id,
        cwd=_text(context.get("cwd")) or meta.cwd,
        created=meta.timestamp,
        updated=updated or _stamp(meta.timestamp),
        first_prompt=_first_prompt(stream)[:MAX_PROMPT],
        tokens=tokens,
        model=_text(context.get("model")),
        provider=meta.model_provider,
        source=meta.source,
        branch=(meta.git.branch if meta.git else None) or "",
        forked_from=meta.forked_from_id or "",
        base=_base(meta),
        parent=meta.subagent.parent_thread_id if meta.subagent else "",
        originator=meta.originator,
        version=meta.cli_version,
        effort=_text(context.get("effort")),
        commit=(meta.git.commit_hash if meta.git else None) or "",
        repository=(meta.git.repository_url if meta.git else None) or "",
        nickname=meta.subagent.nickname if meta.subagent else "",
        role=meta.subagent.role if meta.subagent else "",
        requests=cost.requests,
        usd=cost.usd,
        unpriced=cost.unpriced,
    )


def _base(meta: SessionMeta) -> str:
    return (meta.forked_from_id or "") if meta.forked_from_ordinal_exclusive is not None else ""


def _first_prompt(stream: BinaryIO) -> str:
    """The user's first message, from its event, else from the first message item."""
    fallback = ""
    for line in _front(stream):
        head = read_head(line)
        if head is None:
            continue
        if head["type"] == b"event_msg" and head["payload_type"] in (b"user_message", b"item_completed"):
            record = decode_record(line, 0)
            text = user_text(record) if record else None
            if text is not None:
                return text
        elif not fallback and head["type"] == b"response_item" and head["payload_type"] in (b"message", None):
            fallback = _message_text(decode_record(line, 0))
    return fallback


def _front(stream: BinaryIO) -> Iterator[bytes]:
    for line in read_lines(stream, limit=_MAX_LINE):
        yield line
        if stream.tell() > _FRONT_BYTES:
            return


def _message_text(record: RolloutRecord | None) -> str:
    if record is None or record.payload.get("role") != "user":
        return ""
    texts = [as_object(item).get("text") for item in as_list(record.payload.get("content"))]
    text = "\n".join(part for part in texts if isinstance(part, str))
    return "" if is_host_text(text) else text


def _newest(descriptor: int) -> tuple[str, int, dict[str, object], Spending]:
    """The last time stamp, even that of a torn record; the last sum of tokens; the settings of the last turn; the cost.

    The cost stands behind the tokens.
    """
    updated, tokens, context, cost = "", None, None, None
    read = 0
    for line in read_lines_backwards(descriptor, limit=_MAX_LINE):
        read += len(line)
        head = read_head(line)
        if not updated and head is not None:
            updated = _stamp(head["timestamp"].decode())
        if tokens is None and head is not None and head["payload_type"] == b"token_count":
            tokens = _tokens(decode_record(line, 0))
        elif tokens is None and cost is None and head is not None and head["type"] == REQUEST_COST.encode():
            cost = _cost(decode_record(line, 0))
        elif context is None and head is not None and head["type"] == b"turn_context":
            context = _settings(decode_record(line, 0))
        if (updated and tokens is not None and context is not None) or read > _BACK_BYTES:
            break
    return updated, tokens or 0, context or {}, cost or Spending()


def _cost(record: RolloutRecord | None) -> Spending | None:
    return Spending.from_record(record.payload.get("session_cost")) if record else None


def _tokens(record: RolloutRecord | None) -> int | None:
    counts = as_object(record.payload.get("info")) if record else {}
    return read_usage(counts.get("total_token_usage")).total_tokens if counts else None


def _settings(record: RolloutRecord | None) -> dict[str, object] | None:
    """The payload of a `turn_context`; a message can contain that word too."""
    is_context = (
        record is not None and record.record_type == "turn_context" and isinstance(record.payload.get("cwd"), str)
    )
    return dict(record.payload) if record is not None and is_context else None


def _stamp(text: str) -> str:
    """A time stamp in UTC and in the form in which they sort; empty for an invalid one."""
    if _STAMP.fullmatch(text):
        return text
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return ""
    when = when.astimezone(UTC) if when.tzinfo else when
    return when.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""

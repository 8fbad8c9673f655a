"""The records of a stored session as JSON, whole and in order: for what is shown, not for what is sent.

Damage is passed over, as it is when a session is resumed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.rollout.lineage import history_lines
from codex_py.rollout.replay import records_within

_KIND: Final = re.compile(rb'"type":"(\w{1,40})"')
# Where the kind of a record stands in either program's lines.
_HEAD_BYTES: Final = 120


class Record(NamedTuple):
    """One line. `ordinal` counts from the last one that was told where a line tells none."""

    timestamp: str
    ordinal: int
    kind: str
    payload: dict[str, Any]


def read_records(path: Path, *, kinds: frozenset[bytes] = frozenset()) -> Iterator[Record]:
    """The records of a session, those a fork took over first; with `kinds` at least those of these kinds.

    Raise `UserError` for a file that cannot be read.
    """
    following = 0
    for line, before in history_lines(path):
        for record in _records_of(line, kinds, following):
            following = record.ordinal + 1
            if before is None or record.ordinal < before:
                yield record


def user_text(record: Record) -> str | None:
    """What the user said, when a record is the event that tells it."""
    if record.kind != "event_msg":
        return None
    if record.payload.get("type") == "user_message":
        text = record.payload.get("message")
        return text if isinstance(text, str) else None
    item = as_object(record.payload.get("item"))
    if record.payload.get("type") != "item_completed" or item.get("type") != "UserMessage":
        return None
    texts = [as_object(part).get("text") for part in as_list(item.get("content"))]
    return "\n".join(text for text in texts if isinstance(text, str))


def decode_record(line: bytes, following: int) -> Record | None:
    """A line as a record, which gets the ordinal `following` when it tells none; None for what is no record."""
    try:
        value = as_object(decode_json(line))
    except ValueError:
        return None
    kind, payload, ordinal = value.get("type"), as_object(value.get("payload")), value.get("ordinal")
    if not isinstance(kind, str) or not payload:
        return None
    return Record(str(value.get("timestamp", "")), ordinal if isinstance(ordinal, int) else following, kind, payload)


def _records_of(line: bytes, kinds: frozenset[bytes], following: int) -> Iterator[Record]:
    head = _KIND.search(line, 0, _HEAD_BYTES)
    if kinds and head is not None and head[1] not in kinds and line.endswith(b"}\n"):
        return
    record = decode_record(line, following)
    if record is not None:
        yield record
        return
    for part in records_within(line):
        if (record := decode_record(part, following)) is not None:
            following = record.ordinal + 1
            yield record

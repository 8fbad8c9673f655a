"""The records of a stored session as JSON, whole and in order: for what is shown, not for what is sent.

Damage is passed over, as it is when a session is resumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codex_py.protocol.encoding import as_list, as_object
from codex_py.rollout.lineage import history_lines
from codex_py.rollout.lines import RolloutRecord, decode_record, read_head, records_within

__all__ = ["RolloutRecord", "read_records", "user_text"]


def read_records(path: Path, *, record_types: frozenset[bytes] = frozenset()) -> Iterator[RolloutRecord]:
    """The records of a session, those a fork took over first; with `record_types` at least those of these types.

    Raise `UserError` for a file that cannot be read.
    """
    following = 0
    for line, before in history_lines(path):
        for record in _records_of(line, record_types, following):
            following = record.ordinal + 1
            if before is None or record.ordinal < before:
                yield record


def user_text(record: RolloutRecord) -> str | None:
    """What the user said, when a record is the event that tells it."""
    if record.record_type != "event_msg":
        return None
    if record.payload.get("type") == "user_message":
        text = record.payload.get("message")
        return text if isinstance(text, str) else None
    item = as_object(record.payload.get("item"))
    if record.payload.get("type") != "item_completed" or item.get("type") != "UserMessage":
        return None
    texts = [as_object(block).get("text") for block in as_list(item.get("content"))]
    return "\n".join(text for text in texts if isinstance(text, str))


def _records_of(line: bytes, record_types: frozenset[bytes], following: int) -> Iterator[RolloutRecord]:
    if (
        record_types
        and (head := read_head(line)) is not None
        and head["type"] not in record_types
        and line.endswith(b"}\n")
    ):
        return
    record = decode_record(line, following)
    if record is not None:
        yield record
        return
    for span in records_within(line):
        if (record := decode_record(span, following)) is not None:
            following = record.ordinal + 1
            yield record

"""One line of a session file as a record: the only place that knows how such a line is written.

Lines in the usual layout (keys in the order both programs write them, with or without spaces) are read without decoding
them, because long sessions have thousands. Every other JSON line is brought into that layout first.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_object, decode_json, encode_json

_BEGINNING: Final = (
    rb'\{\s*"timestamp"\s*:\s*"(?P<timestamp>[0-9TZ:.+-]{19,40})"\s*,\s*(?:"ordinal"\s*:\s*(?P<ordinal>[0-9]{1,15})\s*,\s*)?'
    rb'"type"\s*:\s*"(?P<type>\w{1,40})"\s*,\s*"payload"\s*:\s*'
)
_HEAD: Final = re.compile(_BEGINNING + rb'(?:(?=\{\s*"type"\s*:\s*"(?P<payload_type>[^"\\]{0,80})")|)')
# A compaction as far as its first item, as this program writes it.
_REPLACEMENT: Final = re.compile(_BEGINNING + rb'\{"message":"[^"\\]*+(?:\\.[^"\\]*+)*+","replacement_history":\[')
_MAX_ORDINAL: Final = 10**15

# The groups are `timestamp`, `ordinal`, `type` and `payload_type`, where that is the first key of the payload.
# `string` is the whole line in the usual layout, which may be torn further on.
# It is a plain match because a resume makes thousands.
Head: TypeAlias = re.Match[bytes]


class RolloutRecord(NamedTuple):
    """One line. `ordinal` counts on from the line before where the line has none."""

    timestamp: str
    ordinal: int
    record_type: str
    payload: dict[str, Any]


def read_head(line: bytes) -> Head | None:
    """The head of a line; None for what is no record. That of an `event_msg` has the type of its payload."""
    head = _HEAD.match(line)
    if head is not None and (head["payload_type"] is not None or head["type"] != b"event_msg"):
        return head
    try:
        return _HEAD.match(_usual_layout(line))
    except (ValueError, RecursionError):
        return None


def ordinal_of(head: Head, following: int) -> int:
    """The ordinal of a record, `following` where it has none."""
    ordinal = head["ordinal"]
    return following if ordinal is None else int(ordinal)


def decode_record(line: bytes, following: int) -> RolloutRecord | None:
    """A line as a record, which gets the ordinal `following` when it has none; None for what is no record."""
    try:
        value = as_object(decode_json(line))
    except ValueError:
        return None
    record_type, payload, ordinal = value.get("type"), as_object(value.get("payload")), value.get("ordinal")
    if not isinstance(record_type, str) or not payload:
        return None
    return RolloutRecord(
        str(value.get("timestamp", "")), ordinal if isinstance(ordinal, int) else following, record_type, payload
    )


def records_within(line: bytes) -> list[bytes]:
    """Where records may stand in a damaged line that holds more than one: a write that followed a torn one without a
    newline, or a newline that was lost. (Inside JSON text the quotes of a record's head are escaped.)"""
    starts = [head.start() for head in _HEAD.finditer(line)]
    if starts == [0]:
        return []
    return [line[start:end] + b"\n" for start, end in pairwise([*starts, len(line)])]


def replacement_start(line: bytes) -> int | None:
    """Where the items of a compaction begin in a line that this program wrote; None for any other line."""
    found = _REPLACEMENT.match(line)
    return None if found is None else found.end()


def _usual_layout(line: bytes) -> bytes:
    """Raise `ValueError` for what is not JSON or cannot be written as JSON again."""
    record = as_object(decode_json(line))
    ordinal, payload = record.get("ordinal"), record.get("payload")
    if "type" in as_object(payload):
        payload = {"type": as_object(payload)["type"], **as_object(payload)}
    return encode_json(
        {
            "timestamp": record.get("timestamp"),
            **({"ordinal": ordinal} if type(ordinal) is int and 0 <= ordinal < _MAX_ORDINAL else {}),
            "type": record.get("type"),
            "payload": payload,
        }
    )

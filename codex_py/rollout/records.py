"""Reads the records of a stored session, with the files and lines that a fork builds on.

Long sessions have thousands of lines. Those in the usual layout (keys in the order that both programs write, with or
without spaces) are read without decoding; other JSON lines are converted to it first. Damaged lines are skipped.

Codex CLI forks sessions in the same way, and reads such a fork.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json, is_uuid
from codex_py.rollout.files import files_of_thread, home_of, open_rollout, unreadable
from codex_py.rollout.format import SessionMeta
from codex_py.text.files import os_reason, read_lines

_BEGINNING: Final = (
    rb'\{\s*"timestamp"\s*:\s*"(?P<timestamp>[0-9TZ:.+-]{19,40})"\s*,\s*(?:"ordinal"\s*:\s*(?P<ordinal>[0-9]{1,15})\s*,\s*)?'
    rb'"type"\s*:\s*"(?P<type>\w{1,40})"\s*,\s*"payload"\s*:\s*'
)
_HEAD: Final = re.compile(_BEGINNING + rb'(?:(?=\{\s*"type"\s*:\s*"(?P<payload_type>[^"\\]{0,80})")|)')
# A compaction as far as its first item, as this program writes it.
_REPLACEMENT: Final = re.compile(_BEGINNING + rb'\{"message":"[^"\\]*+(?:\\.[^"\\]*+)*+","replacement_history":\[')
MAX_ORDINAL: Final = 10**15
REWIND_MARK: Final = b"thread_rolled_back"

# The groups are `timestamp`, `ordinal`, `type` and `payload_type`, where that is the first key of the payload.
# `string` is the whole line in the usual layout, which may be torn further on.
# It is a plain match because a resume makes thousands.
Head: TypeAlias = re.Match[bytes]


class RolloutRecord(NamedTuple):
    """One line. `ordinal` counts on from the line before where the line has none. `metadata` is Codex CLI's."""

    timestamp: str
    ordinal: int
    record_type: str
    payload: dict[str, Any]
    metadata: object = None


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
    number = ordinal if isinstance(ordinal, int) else following
    return RolloutRecord(str(value.get("timestamp", "")), number, record_type, payload, value.get("metadata"))


def records_within(line: bytes) -> list[bytes]:
    """Where records may stand in a damaged line that holds more than one: a write that followed a torn one without a
    newline, or a newline that was lost. (Inside JSON text the quotes of a record's head are escaped.) Torn ones are
    left out."""
    starts = [head.start() for head in _HEAD.finditer(line)]
    if starts == [0]:
        return []
    found = (line[start:end].rstrip() for start, end in pairwise([*starts, len(line)]))
    return [record + b"\n" for record in found if record.endswith(b"}")]


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
            **({"ordinal": ordinal} if type(ordinal) is int and 0 <= ordinal < MAX_ORDINAL else {}),
            "type": record.get("type"),
            "payload": payload,
        }
    )


MAX_LINE: Final = 128 * 1024 * 1024
_MAX_FILE: Final = 4 * 1024 * 1024 * 1024
_MAX_FORKS: Final = 64


def open_stored(path: Path) -> BinaryIO:
    """Open a rollout file for reading; raise `UserError` for one that cannot or must not be read."""
    try:
        descriptor = open_rollout(path, os.O_RDONLY)
    except OSError as error:
        raise unreadable(path, os_reason(error)) from error
    if os.fstat(descriptor).st_size > _MAX_FILE:
        os.close(descriptor)
        raise unreadable(path, f"larger than {_MAX_FILE} bytes")
    return os.fdopen(descriptor, "rb", buffering=1024 * 1024)


def read_meta(path: Path, line: bytes) -> SessionMeta:
    """The header in a file's first line; raise `UserError` for an invalid one."""
    if not line:
        raise unreadable(path, "it is empty")
    try:
        record = as_object(decode_json(line))
    except ValueError as error:
        raise unreadable(path, "its first line is damaged") from error
    meta = SessionMeta.from_payload(as_object(record.get("payload")))
    if record.get("type") != "session_meta" or not is_uuid(meta.id):
        raise unreadable(path, "its first line is no session header")
    return meta


def ancestors(path: Path, meta: SessionMeta) -> list[tuple[Path, int]]:
    """The files that a fork builds on, the oldest first, each with the ordinal up to which it is read."""
    chain: list[tuple[Path, int]] = []
    bound: int | None = None
    while meta.forked_from_id is not None and meta.forked_from_ordinal_exclusive is not None:
        # A fork may start within the part that its parent inherited, so each ancestor is read to the lowest bound.
        bound = lower(meta.forked_from_ordinal_exclusive, bound)
        parent = any_file_of(home_of(path), meta.forked_from_id)
        if parent is None or len(chain) == _MAX_FORKS:
            raise unreadable(path, f"it continues session `{meta.forked_from_id[:80]}`, which is not there")
        chain.append((parent, bound))
        with open_stored(parent) as stream:
            meta = read_meta(parent, stream.readline(MAX_LINE))
    return chain[::-1]


def lower(bound: int, other: int | None) -> int:
    """The lower of two ordinals, the second of which may be no bound at all."""
    return bound if other is None else min(bound, other)


def any_file_of(home: Path, thread_id: str) -> Path | None:
    """The file of a session, archived or not."""
    files = (path for archived in (False, True) for path in files_of_thread(home, thread_id, archived=archived))
    return next(files, None)


def history_lines(path: Path) -> Iterator[tuple[bytes, int | None]]:
    """Every line of a session, those of the eldest file first, each with the ordinal its file is read up to.

    Raise `UserError` for a file that cannot be read.
    """
    with open_stored(path) as stream:
        meta = read_meta(path, stream.readline(MAX_LINE))
    for file, before in [*ancestors(path, meta), (path, None)]:
        with open_stored(file) as stream:
            for line in read_lines(stream, limit=MAX_LINE):
                yield line, before


__all__ = ["RolloutRecord", "read_records", "user_text"]


def read_records(path: Path, *, record_types: frozenset[bytes] = frozenset()) -> Iterator[RolloutRecord]:
    """The records of a session, inherited ones first; with `record_types` at least those of these types.

    Records that a rewind has dropped are left out. Raise `UserError` for a file that cannot be read.
    """
    live = live_ranges(path) if _mentions_rewind(path) else None
    return (record for record in all_records(path, record_types) if live is None or is_live(record.ordinal, live))


def last_rewind(path: Path) -> int | None:
    """The ordinal of the last rewind of a session; None when there was none."""
    found = None
    if _mentions_rewind(path):
        for record in all_records(path, frozenset({b"event_msg"})):
            if record.record_type == "event_msg" and record.payload.get("type") == REWIND_MARK.decode():
                found = record.ordinal
    return found


def all_records(path: Path, record_types: frozenset[bytes] = frozenset()) -> Iterator[RolloutRecord]:
    """`read_records` with what a rewind has taken back."""
    following = 0
    for line, before in history_lines(path):
        for record in _records_of(line, record_types, following):
            following = record.ordinal + 1
            if before is None or record.ordinal < before:
                yield record


# Ordinals as ranges: from the first number up to, but not including, the second.
Ranges: TypeAlias = tuple[tuple[int, int], ...]


def is_live(ordinal: int, live: Ranges) -> bool:
    """Whether a record with this ordinal counts."""
    return any(start <= ordinal < end for start, end in live)


def live_ranges(path: Path, before: int | None = None) -> Ranges:
    """The records that are left after a session's rewinds; with `before`, after those below that ordinal.

    A rewind is a record `thread_rolled_back`. Ours lists the remaining ranges in `live`, that of Codex CLI says how
    many turns are dropped.
    """
    live: Ranges = ((0, MAX_ORDINAL),)
    begins: list[int] = []
    begun: int | None = None
    for record in all_records(path, frozenset({b"event_msg"})):
        if record.record_type != "event_msg" or (before is not None and record.ordinal >= before):
            continue
        match record.payload.get("type"):
            case "task_started":
                begun = record.ordinal
            case "thread_rolled_back":
                live = _after_rewind(record, live, [begin for begin in begins if is_live(begin, live)])
            case _ if begun is not None and user_text(record) is not None:
                begins.append(begun)
                begun = None
            case _:
                pass
    return live


def _after_rewind(record: RolloutRecord, live: Ranges, begins: list[int]) -> Ranges:
    following = (record.ordinal + 1, MAX_ORDINAL)
    stated = record.payload.get("live")
    if stated is not None:
        pairs = [as_list(pair) for pair in as_list(stated)]
        numbers = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2]
        return (*((start, end) for start, end in numbers if isinstance(start, int) and isinstance(end, int)), following)
    count = record.payload.get("num_turns")
    if not isinstance(count, int) or count <= 0 or not begins:
        return live
    return (*ranges_below(live, begins[max(0, len(begins) - count)]), following)


def ranges_below(live: Ranges, end: int) -> Ranges:
    """The part of the ranges below an ordinal."""
    return tuple((start, min(stop, end)) for start, stop in live if start < end)


def _mentions_rewind(path: Path) -> bool:
    """Whether a file of the session contains the mark of a rewind, which most do not."""
    with open_stored(path) as stream:
        meta = read_meta(path, stream.readline(MAX_LINE))
    return any(map(_has_mark, [path, *(file for file, _ in ancestors(path, meta))]))


def _has_mark(path: Path) -> bool:
    end = b""
    with open_stored(path) as stream:
        while block := stream.read(4 * 1024 * 1024):
            if REWIND_MARK in end + block:
                return True
            end = block[-len(REWIND_MARK) :]
    return False


def user_text(record: RolloutRecord) -> str | None:
    """The text of the user's message, if the record is its event."""
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


def inherited_lines(path: Path, *, before: int) -> Iterator[bytes]:
    """The lines of a session whose ordinal is below `before`, headers left out, each with its newline.

    Records that a rewind has dropped, the rewinds themselves, and lines without a whole record are left out.
    Raise `UserError` for a file that cannot be read.
    """
    following = 0
    live = live_ranges(path, before) if _mentions_rewind(path) else ((0, MAX_ORDINAL),)
    for line, bound in history_lines(path):
        head = read_head(line)
        if head is not None and line.endswith(b"}\n"):
            record_type, ordinal = head["type"].decode(), ordinal_of(head, following)
        else:
            record = decode_record(line, following)
            if record is None:
                continue
            record_type, ordinal = record.record_type, record.ordinal
        following = ordinal + 1
        if record_type != "session_meta" and ordinal < lower(before, bound) and is_live(ordinal, live):
            yield line if line.endswith(b"\n") else line + b"\n"

"""Rebuilds the state of a session from the lines of its rollout file.

Lines can be torn, foreign or hostile. Lines that are not whole records are skipped and counted; nothing is raised.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.items import ResponseItem, exchange_of, message
from codex_py.protocol.usage import Spending, TokenUsage
from codex_py.rollout.format import read_usage
from codex_py.rollout.records import REWIND_MARK, Head, ordinal_of, read_head, records_within, replacement_start

# A line that holds an item in our own encoding: a time stamp of 24 characters, the ordinal, then the payload.
_ITEM_START: Final = b'{"timestamp":"'
_ITEM_ORDINAL: Final = len('{"timestamp":"2026-11-21T22:02:11.207Z","ordinal":')
_ITEM_MARK: Final = b',"type":"response_item","payload":{"type":"'
_ITEM_PAYLOAD: Final = len(',"type":"response_item","payload":')
_TYPE_FIRST: Final = '{"type":"'
# Bookkeeping of Codex CLI inside an item; providers other than its own refuse it.
_PASSTHROUGH: Final = "internal_chat_message_metadata_passthrough"
_PASSTHROUGH_BYTES: Final = _PASSTHROUGH.encode()
# Items Codex CLI keeps in its files and never sends.
_NEVER_SENT: Final = frozenset({"ghost_snapshot"})
_NO_END: Final = 1 << 62
# How many records to look back for a readable one where only the newest counts.
_LOOK_BACK: Final = 8


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)
# The C function below `raw_decode`, which costs as much again; it raises `StopIteration` where nothing begins.
_scan: Final[Callable[[str, int], tuple[Any, int]]] = cast("Any", _DECODER).scan_once


class Replay:
    """The state of a session. Feed it the lines in order, a fork's parent first; then read its attributes."""

    def __init__(self) -> None:
        self.items: list[ResponseItem] = []
        self.world_state: dict[str, Any] | None = None
        self.window = 0
        self.work_state: dict[str, Any] | None = None
        self._counted = 0
        self._has_full_state = False
        self._has_replacement = False
        self.next_ordinal = 0
        self.damaged = 0
        # Whether a rewind was among the lines: then some of them do not count.
        self.is_rewound = False
        self._contexts: deque[bytes] = deque(maxlen=_LOOK_BACK)
        self._counts: deque[bytes] = deque(maxlen=_LOOK_BACK)
        self._early: list[tuple[int, ResponseItem]] = []
        self.unheard: list[ResponseItem] = []
        self._costs: deque[bytes] = deque(maxlen=_LOOK_BACK)

    def feed_all(self, lines: Iterable[bytes], *, before: int | None = None) -> bytes:
        """Take the lines of a file, each with its newline, as `feed` does; give back the last one.

        This loop is the fast path for items in our own encoding, of which files have thousands. Each item is decoded
        although only its bytes are kept: a torn line can end in `}}` by chance, and such an item would break every
        later request. Decoding is the only proof, and costs 3 ms per megabyte.
        """
        line = b""
        end = _NO_END if before is None else before
        for line in lines:
            start = line.find(_ITEM_MARK, _ITEM_ORDINAL, _ITEM_ORDINAL + 60)
            ordinal = line[_ITEM_ORDINAL:start]
            if start > 0 and ordinal.isdigit() and line.startswith(_ITEM_START) and _PASSTHROUGH_BYTES not in line:
                start += _ITEM_PAYLOAD
                try:
                    text = line.decode()
                    # What stands before the payload is ASCII, so that an index into the bytes is one into the text.
                    whole = text[_scan(text, start)[1] :] == "}\n"
                except (ValueError, StopIteration, RecursionError):
                    whole = False
                if whole:
                    number = int(ordinal)
                    if number < end:
                        self.items.append(ResponseItem(line[start:-2]))
                        self.next_ordinal = max(self.next_ordinal, number + 1)
                    continue
            self.feed(line, before=before)
        return line

    def skim(self, lines: Iterable[bytes]) -> None:
        """Take lines before a compaction: their items are skipped, because it replaces them; other records count."""
        for line in lines:
            head = read_head(line)
            if head is not None and head["type"] == b"response_item" and line.endswith(b"}\n"):
                ordinal = ordinal_of(head, self.next_ordinal)
                self.next_ordinal = max(self.next_ordinal, ordinal + 1)
            else:
                self.feed(line)

    def feed(self, line: bytes, *, before: int | None = None) -> None:
        """Take one line with its newline; records whose ordinal is not below `before` are left out."""
        if self._took(line, before) or line.isspace():
            return
        damaged = self.damaged + 1
        self.feed_all(records_within(line), before=before)
        self.damaged = damaged

    def pending_outputs(self) -> dict[str, ResponseItem]:
        """The outputs, by call, that were stored early and are not in the history."""
        found: dict[str, ResponseItem] = {}
        for index, item in self._early:
            exchange = exchange_of(item)
            if exchange is not None and exchange.is_output:
                since = map(exchange_of, self.items[index:])
                if not any(other and other.is_output and other.call_id == exchange.call_id for other in since):
                    found[exchange.call_id] = item
        return found

    def turn_context(self) -> dict[str, Any] | None:
        """The newest readable `turn_context`."""
        return next(map(_payload_of, _readable(self._contexts)), None)

    def usage(self) -> tuple[TokenUsage, TokenUsage]:
        """Tokens of the whole session and of its last response, from the newest record that has them."""
        for record in _readable(self._counts):
            payload = _payload_of(record)
            counts = as_object(payload.get("info"))
            if counts:
                return read_usage(counts.get("total_token_usage")), read_usage(counts.get("last_token_usage"))
            if "thread_token_usage" in payload:
                return read_usage(payload["thread_token_usage"]), read_usage(payload.get("usage"))
        return TokenUsage(), TokenUsage()

    def spending(self) -> Spending:
        """The cost of the session, by the newest record that has one."""
        newest = next(map(_payload_of, _readable(self._costs)), None)
        return Spending.from_record(newest and newest.get("session_cost"))

    def stands_alone(self) -> bool:
        """Whether the lines start with a compaction and earlier lines could add nothing."""
        known = self._has_replacement and self._has_full_state and bool(_readable(self._contexts))
        return known and self.usage() != (TokenUsage(), TokenUsage())

    def covered(self) -> int:
        """How many items the newest token count covers: outputs just before it had not been sent yet."""
        covered = min(self._counted, len(self.items))
        while covered and (exchange := exchange_of(self.items[covered - 1])) and exchange.is_output:
            covered -= 1
        return covered

    def _took(self, line: bytes, before: int | None) -> bool:
        try:
            if not line.endswith(b"\n"):
                # The line most likely to be torn, so a cheap look is not enough.
                decode_json(line)
            head = read_head(line)
            if head is None:
                return False
            ordinal = ordinal_of(head, self.next_ordinal)
            if before is None or ordinal < before:
                self._apply(head)
                self.next_ordinal = max(self.next_ordinal, ordinal + 1)
        except (ValueError, RecursionError):
            return False
        return True

    def _apply(self, head: Head) -> None:
        line = head.string
        match head["type"]:
            case b"response_item":
                if (item := _item_at(line)) is not None:
                    self.items.append(item)
            case b"compacted":
                self._compact(line)
            case b"world_state":
                payload = _payload_of(line)
                state = as_object(payload.get("state"))
                self._has_full_state = self._has_full_state or bool(payload.get("full"))
                self.world_state = state if payload.get("full") else _merged(self.world_state or {}, state)
            case b"early_output":
                self._early.append((len(self.items), _item_from(_payload_of(line))))
            case b"early_input":
                self.unheard.append(_item_from(_payload_of(line)))
            case b"event_msg" if self.unheard and head["payload_type"] == b"user_message":
                # It has found its place in the history, whatever became of that since.
                self.unheard.pop(0)
            case b"turn_context":
                self._early.clear()
                self._contexts.append(_ended(line))
            case b"request_cost":
                self._costs.append(_ended(line))
            case b"token_usage_record":
                self._note_counts(line)
            case b"event_msg" if head["payload_type"] == b"token_count":
                self._note_counts(line)
            case _:
                self.is_rewound = self.is_rewound or head["payload_type"] == REWIND_MARK
                _ended(line)

    def _note_counts(self, line: bytes) -> None:
        self._counts.append(_ended(line))
        self._counted = len(self.items)

    def _compact(self, line: bytes) -> None:
        payload = _payload_of(line)
        self._early.clear()
        replacement = payload.get("replacement_history")
        if replacement is not None:
            self.items = _items_in(line) or [_item_from(as_object(value)) for value in as_list(replacement)]
        else:
            # Old files keep only the summary: what the user said stays, and the summary follows it.
            retained = [
                item for item in self.items if item.type == "message" and item.decode().get("role") != "assistant"
            ]
            self.items = [*retained, message("user", str(payload.get("message", "")))]
        self._counted = 0
        work = payload.get("work_state")
        self.work_state = as_object(work) if work else self.work_state
        number = payload.get("window_number")
        self._has_replacement = bool(work) and isinstance(number, int) and replacement is not None
        self.window = number if isinstance(number, int) and number > self.window else self.window + 1


def _item_at(line: bytes) -> ResponseItem | None:
    """The item of a line in another layout or encoding, encoded once; None for what is never sent."""
    item = _payload_of(line)
    return None if item.get("type") in _NEVER_SENT else _item_from(item)


def _items_in(line: bytes) -> list[ResponseItem]:
    """The items of a compaction in our own encoding, their bytes kept as they are; none when it is in another one.

    The line is known to be JSON.
    """
    start = replacement_start(line)
    if start is None or _PASSTHROUGH_BYTES in line:
        return []
    text = line.decode()
    # What stands before the items is ASCII only when the summary is.
    offset = len(line[:start].decode())
    items: list[ResponseItem] = []
    while text.startswith(_TYPE_FIRST, offset):
        end = _scan(text, offset)[1]
        items.append(ResponseItem(text[offset:end].encode()))
        if text[end] == "]":
            return items
        offset = end + 1
    return []


def _item_from(value: dict[str, Any]) -> ResponseItem:
    if not isinstance(value.get("type"), str):
        raise ValueError("not an item")
    value.pop(_PASSTHROUGH, None)
    item = ResponseItem.from_wire(value)
    if b"Infinity" in item.encoded:
        # A number too large for a float turns into a word that JSON does not have.
        decode_json(item.encoded)
    return item


def _payload_of(line: bytes) -> dict[str, Any]:
    payload = as_object(as_object(decode_json(line)).get("payload"))
    if not payload:
        raise ValueError("not a record")
    return payload


def _ended(line: bytes) -> bytes:
    """A line that may be decoded later; raise `ValueError` if it is torn. Most whole lines need only a cheap check."""
    if not line.rstrip().endswith(b"}}"):
        decode_json(line)
    return line


def _readable(lines: deque[bytes]) -> list[bytes]:
    readable: list[bytes] = []
    for line in reversed(lines):
        try:
            _payload_of(line)
        except (ValueError, RecursionError):
            continue
        readable.append(line)
    return readable


def _merged(state: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """`state` after a JSON merge patch (RFC 7396)."""
    merged = dict(state)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif value == {} or as_object(value):
            merged[key] = _merged(as_object(merged.get(key)), as_object(value))
        else:
            merged[key] = value
    return merged

"""Mutations of recorded answers: what a broken server, a broken proxy or an attacker makes of a stream of events."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

CORPUS: Final = Path(__file__).with_name("corpus")

Mutation: TypeAlias = Callable[[bytes, random.Random], bytes]

_HUGE: Final = 3_000_000
_ODD_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1.5, 10**400, 1e308, "", " ", "\0", "\ud800", "\x1b[31m", "\u2028", "x" * 5000),
    *([], {}, [[]], [None], {"type": None}, {"": {}}, ["a", {"b": [1, {"c": None}]}]),
)
_NUMBERS: Final = (b"1e999", b"-0", b"NaN", b"Infinity", b"0" * 50, b"9" * 5000, b"1.", b"+1")
_BYTES: Final = (b"\0", b"\xef\xbb\xbf", b"\xff", b"\r", b"\n\n", b"\\", b'"', b"}", b"\xed\xa0\x80", b"\x85")
_STRAY_LINES: Final = (
    *(b"data:", b"data", b": ping", b":", b"event: message", b"event:", b"id: 7", b"retry: 1", b"data: [DONE]"),
    *(b"data: {}", b"data: null", b"data: []", b'data: {"type":null}', b'data: "x"', b"\xef\xbb\xbfdata: {}", b"\0"),
    *(b"data: {", b'data: {"type":"response.completed"}', b"HTTP/1.1 200 OK", b"<html>", b"\xff\xfe"),
)


@cache
def recorded(wire: str = "responses") -> tuple[bytes, ...]:
    """The corpus of a wire, in the order of its file names."""
    directory = CORPUS if wire == "responses" else CORPUS / wire
    return tuple(path.read_bytes() for path in sorted(directory.glob("*.sse")))


def mutated(random_: random.Random, wire: str = "responses") -> bytes:
    """A recorded answer with one to four mutations."""
    stream = random_.choice(recorded(wire))
    for _ in range(random_.choice([1, 1, 1, 2, 3, 4])):
        stream = random_.choices(_MUTATIONS, _WEIGHTS)[0](stream, random_)
    return stream


def in_pieces(stream: bytes, random_: random.Random) -> list[bytes]:
    """The stream cut where no reader would cut it."""
    count = random_.choice([0, 0, 1, 3, 20])
    cuts = sorted(random_.randrange(len(stream) + 1) for _ in range(count))
    return [stream[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True) if start < stop]


def _cut(stream: bytes, random_: random.Random) -> bytes:
    return stream[: random_.randrange(len(stream) + 1)]


def _lose(stream: bytes, random_: random.Random) -> bytes:
    start, stop = _slice(stream, random_)
    return stream[:start] + stream[stop:]


def _repeat(stream: bytes, random_: random.Random) -> bytes:
    start, stop = _slice(stream, random_)
    return stream[:stop] + stream[start:stop] * random_.randint(1, 3) + stream[stop:]


def _flip(stream: bytes, random_: random.Random) -> bytes:
    content = bytearray(stream)
    for _ in range(random_.choice([1, 1, 5, 50])):
        if content:
            content[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
    return bytes(content)


def _insert(stream: bytes, random_: random.Random) -> bytes:
    inserted = random_.choice(_BYTES)
    at = random_.choice([0, random_.randrange(len(stream) + 1)])
    return stream[:at] + inserted * random_.choice([1, 1, 3]) + stream[at:]


def _line_ends(stream: bytes, random_: random.Random) -> bytes:
    ends = random_.choice([[b"\r\n"], [b"\r"], [b"\n", b"\r\n", b"\r"], [b"\n\n"], [b"\n", b"\r\n\r\n"]])
    return b"".join(line + random_.choice(ends) for line in re.split(rb"\r\n|\n", stream))


def _stray_line(stream: bytes, random_: random.Random) -> bytes:
    lines = stream.split(b"\n")
    lines.insert(random_.randrange(len(lines) + 1), random_.choice(_STRAY_LINES))
    return b"\n".join(lines)


def _shuffle(stream: bytes, random_: random.Random) -> bytes:
    events = _events(stream)
    for _ in range(random_.randint(1, 3)):
        events.insert(random_.randrange(len(events)), events.pop(random_.randrange(len(events))))
    return b"\n\n".join(events)


def _drop_events(stream: bytes, random_: random.Random) -> bytes:
    return b"\n\n".join(event for event in _events(stream) if random_.random() > 0.2) + b"\n\n"


def _repeat_event(stream: bytes, random_: random.Random) -> bytes:
    events = _events(stream)
    at = random_.randrange(len(events))
    return b"\n\n".join([*events[: at + 1], *[events[at]] * random_.choice([1, 2, 40]), *events[at + 1 :]])


def _splice(stream: bytes, random_: random.Random) -> bytes:
    other = _events(random_.choice(recorded()))
    events = _events(stream)
    at = random_.randrange(len(events))
    return b"\n\n".join([*events[:at], *other[random_.randrange(len(other)) :], *events[at:]])


def _other_type(stream: bytes, random_: random.Random) -> bytes:
    """One value somewhere in an event becomes one of another type, or its key goes or changes."""
    return _with_event(stream, random_, lambda event: _change(event, random_))


def _odd_number(stream: bytes, random_: random.Random) -> bytes:
    places = [match.span() for match in re.finditer(rb"(?<=:)-?\d+(?=[,}])", stream)]
    if not places:
        return stream
    start, stop = random_.choice(places)
    return stream[:start] + random_.choice(_NUMBERS) + stream[stop:]


def _deep(stream: bytes, random_: random.Random) -> bytes:
    depth = random_.choice([50, 900, 1100, 100_000])
    opened, closed = random_.choice([(b"[", b"]"), (b'{"a":', b"}")])
    places = [match.start() for match in re.finditer(rb'(?<=":)(?=["\[{])', stream)]
    if not places:
        return stream
    at = random_.choice(places)
    nested = opened * depth + b"1" + closed * random_.choice([depth, depth - 1])
    return stream[:at] + nested + b',"rest":' + stream[at:]


def _huge(stream: bytes, random_: random.Random) -> bytes:
    size = random_.choice([70_000, _HUGE])
    filler = random_.choice([b"x", b"\\u0000", b"\\n", b"\xc3\xbc", b"\\ud83d"]) * (size // 6)
    places = [match.end() for match in re.finditer(rb'":"', stream)]
    at = random_.choice(places) if places else 0
    return stream[:at] + filler + stream[at:]


_WEIGHED: Final[tuple[tuple[Mutation, float], ...]] = (
    *((one, 4.0) for one in (_cut, _lose, _repeat, _flip, _insert, _line_ends, _stray_line, _shuffle)),
    *((one, 4.0) for one in (_drop_events, _repeat_event, _splice, _odd_number)),
    (_other_type, 16.0),
    (_deep, 2.0),
    (_huge, 0.5),
)
_MUTATIONS: Final = [mutation for mutation, _ in _WEIGHED]
_WEIGHTS: Final = [weight for _, weight in _WEIGHED]


def _slice(stream: bytes, random_: random.Random) -> tuple[int, int]:
    start = random_.randrange(len(stream) + 1)
    return start, min(len(stream), start + random_.choice([1, 10, 300, 3000]))


def _events(stream: bytes) -> list[bytes]:
    return re.split(rb"\r?\n\r?\n", stream)


def _with_event(stream: bytes, random_: random.Random, change: Callable[[Any], Any]) -> bytes:
    events = _events(stream)
    at = random_.randrange(len(events))
    head, mark, text = events[at].partition(b"data: ")
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return stream
    events[at] = head + mark + json.dumps(change(event)).encode()
    return b"\n\n".join(events)


def _change(value: Any, random_: random.Random) -> Any:
    """The value with one place in it changed; the deeper ones are as likely as the outer ones."""
    if not isinstance(value, dict | list) or not value or random_.random() < 0.1:
        return random_.choice(_ODD_VALUES)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        at = random_.randrange(len(items))
        return [*items[:at], _change(items[at], random_), *items[at + 1 :]]
    fields = cast("dict[str, Any]", value)
    key = random_.choice(list(fields))
    match random_.random():
        case chance if chance < 0.15:
            return {name: one for name, one in fields.items() if name != key}
        case chance if chance < 0.25:
            named = random_.choice(["", "type", "item", "id"])
            return {named if name == key else name: one for name, one in fields.items()}
        case _:
            return {**fields, key: _change(fields[key], random_)}

"""Random streams of the Chat Completions API: calls in fragments that alternate, cut streams, damaged bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ModelError
from codex_py.model.answer import SseParser
from codex_py.model.client import ItemDone
from codex_py.model.wires.chat_answer import ChatDecoder
from codex_py.model.wires.tools import ToolTable
from tests.drills.report import Report

_TEXTS: Final = ('"}', "x" * 30, "ü\\", "{[", "")
# What servers give each fragment: all of it, all of it each time, no ids, no indexes.
_STYLES: Final = ("all", "repeats", "no ids", "no indexes")

Call = tuple[str, str]


def chat_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Each round is one stream whole, cut and damaged. A whole one has exactly its calls, a cut one none."""
    report = Report(rounds)
    for number in range(rounds):
        chance = random.Random(f"{seed}/{number}")
        style = chance.choice(_STYLES)
        wanted, chunks = _stream(chance, style)
        body = b"".join(b"data: %b\n\n" % chunk for chunk in chunks)
        found, whole = read_calls(body)
        if not whole or (sorted(found) if style == "no indexes" else found) != wanted:
            report.problems.append(f"round {number}, {style}: {found} instead of {wanted}")
        tail = sum(len(chunk) + 8 for chunk in chunks[-3:])
        found, whole = read_calls(body[: chance.randrange(len(body) - tail)])
        report.counts["cut"] += not whole
        if found or whole:
            report.problems.append(f"round {number}, {style}: a cut stream has made {found}")
        damaged = bytearray(body)
        for _ in range(3):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        found, whole = read_calls(bytes(damaged))
        report.counts["refused as damaged"] += not whole
        if len(found) > len(wanted) + 3:
            report.problems.append(f"round {number}, {style}: a damaged stream has made {found} of {wanted}")
    return report


def read_calls(body: bytes) -> tuple[list[Call], bool]:
    """The calls that the items of a body make, and whether it was read to its end. Its ids must differ."""
    parser, decoder = SseParser(), ChatDecoder(ToolTable(), lambda _: False)
    events: list[Any] = []
    try:
        for data in [*parser.feed(body), *parser.finish()]:
            events += decoder.decode(data)
        events += decoder.finish()
    except ModelError:
        return _calls(events), False
    return _calls(events), any(type(event).__name__ == "Completed" for event in events)


def _calls(events: list[Any]) -> list[Call]:
    items = [event.item.decode() for event in events if isinstance(event, ItemDone)]
    calls = [item for item in items if item["type"] == "function_call"]
    assert len({call["call_id"] for call in calls}) == len(calls), "one id for two calls"
    return [(call["name"], call["arguments"]) for call in calls]


def _stream(chance: random.Random, style: str) -> tuple[list[Call], list[bytes]]:
    """The calls of a stream, in the order in which they have to be made, and its chunks."""
    wanted: list[Call] = []
    streams: list[list[bytes]] = []
    for number in range(chance.randrange(5)):
        name = f"tool{number % 2}"
        arguments = json.dumps({"n": number, "text": chance.choice(_TEXTS)})
        wanted.append((name, arguments))
        streams.append(_fragments(chance, style, number, wanted[-1]))
    chunks = [_chunk({"content": "a"})]
    while any(streams):
        chunks.append(chance.choice([pieces for pieces in streams if pieces]).pop(0))
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 1}}).encode()
    chunks += [_chunk({}, "tool_calls"), usage, b"[DONE]"]
    # Without indexes they come in the order in which they began.
    return (sorted(wanted) if style == "no indexes" else wanted), chunks


def _fragments(chance: random.Random, style: str, number: int, call: Call) -> list[bytes]:
    name, arguments = call
    pieces: list[bytes] = []
    at = 0
    while at < len(arguments):
        end = at + chance.randrange(1, 20)
        fragment: dict[str, Any] = {"function": {"arguments": arguments[at:end]}}
        if style != "no indexes":
            fragment["index"] = number
        if style != "no ids" and (at == 0 or style in ("repeats", "no indexes")):
            fragment["id"] = f"c{number}"
        if at == 0 or style == "repeats":
            fragment["function"]["name"] = name
        pieces.append(_chunk({"tool_calls": [fragment]}))
        at = end
    return pieces


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return json.dumps({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()

"""Random streams on each wire: calls in fragments that alternate, streams that are cut, reordered or damaged."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

from codex_py.errors import ModelError
from codex_py.model.answer import ResponseBody
from codex_py.model.client import Completed, ItemDone
from codex_py.model.failures import Server
from codex_py.model.wires import Decoder
from codex_py.model.wires.chat_answer import ChatDecoder
from codex_py.model.wires.messages_answer import MessagesDecoder
from codex_py.model.wires.responses import ResponsesDecoder
from codex_py.model.wires.tools import ToolTable
from tests.drills.report import Report

Call = tuple[str, str]
_TEXTS: Final = ('"}', "x" * 30, "ü\\", "{[", "")
# What servers of chat completions give each fragment: all of it, all of it each time, no ids, no indexes.
_STYLES: Final = ("all", "repeats", "no ids", "no indexes")
_DECODERS: Final[dict[str, Callable[[], Decoder]]] = {
    "responses": ResponsesDecoder,
    "chat": lambda: ChatDecoder(ToolTable(), lambda _: False),
    "messages": lambda: MessagesDecoder(ToolTable(), lambda _: False),
}
WIRES: Final = tuple(_DECODERS)


def streams_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """So many rounds on each wire; a round is one stream whole, cut, reordered and damaged.

    A whole stream has exactly its calls, a cut one no others, and the rest neither crashes nor multiplies them.
    """
    report = Report(rounds)
    for wire in WIRES:
        for number in range(rounds):
            chance = random.Random(f"{seed}/{wire}/{number}")
            for problem in _round(wire, chance, report):
                report.problems.append(f"{wire}, round {number}: {problem}")
    return report


def read_calls(wire: str, body: bytes) -> tuple[list[Call], bool]:
    """The calls that the items of a body make, and whether it was read to its end.

    The Chat and Messages decoders must give each call an id of its own. Responses ids are the server's.
    """
    events: list[Any] = []

    async def read() -> None:
        response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=httpx.ByteStream(body))
        answer = ResponseBody(response, server=Server("http://127.0.0.1"), idle_timeout=60.0)
        async for event in answer.events(_DECODERS[wire]()):
            events.append(event)

    try:
        asyncio.run(read())
    except ModelError:
        return _calls(wire, events), False
    return _calls(wire, events), any(isinstance(event, Completed) for event in events)


def _round(wire: str, chance: random.Random, report: Report) -> list[str]:
    wanted, chunks, is_sorted = _stream(wire, chance)
    problems: list[str] = []
    body = _body(chunks)
    found, whole = read_calls(wire, body)
    if not whole or (sorted(found) if is_sorted else found) != (sorted(wanted) if is_sorted else wanted):
        problems.append(f"{found} instead of {wanted}")
    found, whole = read_calls(wire, body[: chance.randrange(len(body) - len(_body(chunks[-3:])))])
    report.counts[f"{wire} cut"] += not whole
    if whole or not set(found) <= (set() if wire == "chat" else set(wanted)) or len(set(found)) < len(found):
        problems.append(f"a cut stream has made {found} of {wanted}")
    found, _ = read_calls(wire, _body(chance.sample(chunks, len(chunks))))
    # Pieces of a chat call that came before its start may begin one of their own.
    if len(found) > (len(chunks) if wire == "chat" else len(wanted)):
        problems.append(f"a reordered stream has made {found} of {wanted}")
    damaged = bytearray(body)
    for _ in range(3):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    found, whole = read_calls(wire, bytes(damaged))
    report.counts[f"{wire} refused as damaged"] += not whole
    if len(found) > len(wanted) + 3:
        problems.append(f"a damaged stream has made {found} of {wanted}")
    return problems


def _calls(wire: str, events: list[Any]) -> list[Call]:
    items = [event.item.decode() for event in events if isinstance(event, ItemDone)]
    calls = [item for item in items if item["type"] == "function_call"]
    if wire != "responses":
        assert len({call["call_id"] for call in calls}) == len(calls), "one id for two calls"
    return [(str(call.get("name")), str(call.get("arguments"))) for call in calls]


def _stream(wire: str, chance: random.Random) -> tuple[list[Call], list[bytes], bool]:
    """The calls of a stream in the order of its items, its events, and whether that order is open."""
    wanted = [
        (f"tool{number % 2}", json.dumps({"n": number, "text": chance.choice(_TEXTS)}))
        for number in range(chance.randrange(5))
    ]
    match wire:
        case "chat":
            style = chance.choice(_STYLES)
            parts = [_chat_parts(chance, style, number, call) for number, call in enumerate(wanted)]
            # Without indexes they come in the order in which they began.
            usage = {"choices": [], "usage": {"prompt_tokens": 1}}
            end = [_chat({}, "tool_calls"), json.dumps(usage).encode(), b"[DONE]"]
            return wanted, [_chat({"content": "a"}), *_mixed(chance, parts), *end], style == "no indexes"
        case "messages":
            parts = [_messages_parts(chance, number, call) for number, call in enumerate(wanted)]
            stop = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}}
            begin = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
            end = [_event({"type": "ping"}), _event(stop), _event({"type": "message_stop"})]
            return wanted, [_event(begin), *_mixed(chance, parts), *end], True
        case _:
            parts = [_responses_parts(chance, number, call) for number, call in enumerate(wanted)]
            begin = {"type": "response.created", "response": {"id": "r"}}
            progress, completed = (
                {"type": f"response.{name}", "response": {}} for name in ("in_progress", "completed")
            )
            end = [_event(progress), _event(progress), _event(completed)]
            return wanted, [_event(begin), *_mixed(chance, parts), *end], True


def _mixed(chance: random.Random, streams: list[list[bytes]]) -> list[bytes]:
    """The events of several calls, each in its own order."""
    mixed: list[bytes] = []
    while any(streams):
        mixed.append(chance.choice([pieces for pieces in streams if pieces]).pop(0))
    return mixed


def _pieces(chance: random.Random, text: str) -> list[str]:
    pieces: list[str] = []
    at = 0
    while at < len(text):
        end = at + chance.randrange(1, 20)
        pieces.append(text[at:end])
        at = end
    return pieces


def _chat_parts(chance: random.Random, style: str, number: int, call: Call) -> list[bytes]:
    name, arguments = call
    parts: list[bytes] = []
    for at, piece in enumerate(_pieces(chance, arguments)):
        fragment: dict[str, Any] = {"function": {"arguments": piece}}
        if style != "no indexes":
            fragment["index"] = number
        if style != "no ids" and (at == 0 or style in ("repeats", "no indexes")):
            fragment["id"] = f"c{number}"
        if at == 0 or style == "repeats":
            fragment["function"]["name"] = name
        parts.append(_chat({"tool_calls": [fragment]}))
    return parts


def _messages_parts(chance: random.Random, number: int, call: Call) -> list[bytes]:
    name, arguments = call
    block = {"type": "tool_use", "id": f"c{number}", "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(chance, arguments)]
    return [
        _event({"type": "content_block_start", "index": number, "content_block": block}),
        *(_event({"type": "content_block_delta", "index": number, "delta": delta}) for delta in deltas),
        _event({"type": "content_block_stop", "index": number}),
    ]


def _responses_parts(chance: random.Random, number: int, call: Call) -> list[bytes]:
    name, arguments = call
    item = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": name}
    added = {"type": "response.output_item.added", "output_index": number, "item": {**item, "arguments": ""}}
    delta = {"type": "response.function_call_arguments.delta", "output_index": number}
    done = {"type": "response.output_item.done", "output_index": number, "item": {**item, "arguments": arguments}}
    return [
        _event(added),
        *(_event({**delta, "delta": piece}) for piece in _pieces(chance, arguments)),
        _event(done),
    ]


def _chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return _event({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def _event(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode()


def _body(events: list[bytes]) -> bytes:
    return b"".join(b"data: %b\n\n" % event for event in events)

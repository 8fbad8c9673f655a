"""What must hold for every request to a Responses server, whatever the test is about.

Each check gives back the problems it finds as sentences; its name in `CHECKS` is the name a test excuses it by.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.support.fake_responses import Request

_OUTPUT_OF: Final = {
    "function_call": "function_call_output",
    "local_shell_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_WHITESPACE: Final = " \t\r\n"


@dataclass
class Conversation:
    """What the server remembers of one thread: the request before, and the items it answered with.

    A request for a compaction is no part of the conversation; `compacting` says that one has come since the last.
    """

    last: Request | None = None
    answered: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    compacting: bool = False

    def excused_for(self, request: Request) -> set[str]:
        """The checks that a compaction suspends: for the requests that ask for it, and once for the one after it."""
        if request.compacts:
            # A second one may do without the oldest items, because the first did not fit.
            dropped = {"prefix", "replay"} if self.compacting else set[str]()
            endpoint = request.path.partition("?")[0].endswith("/compact")
            return {"tools"} | dropped | ({"store", "stream", "include", "head"} if endpoint else set[str]())
        if self.last is not None and self.compacting and request.window > self.last.window:
            return {"prefix", "replay"}
        return set()

    def note(self, request: Request) -> None:
        """Remember a request that has been checked."""
        if request.compacts:
            self.compacting = True
            return
        if self.last is not None and request.window != self.last.window:
            self.answered.clear()
        self.last, self.compacting = request, False


def top_level_spans(raw: bytes) -> dict[str, tuple[int, int]]:
    """Where the value of each top-level key of a JSON object starts and ends, in bytes. Linear.

    Raises `ValueError` for what is not an object, has a key twice, or goes on after its end.
    """
    text = raw.decode()
    decoder = json.JSONDecoder()
    spans: dict[str, tuple[int, int]] = {}
    at, offset, counted = _expect(text, 0, "{"), 0, 0
    while not text.startswith("}", at):
        key, at = decoder.raw_decode(text, at)
        start = _expect(text, _skip(text, at), ":")
        _, stop = decoder.raw_decode(text, start)
        if not isinstance(key, str) or key in spans:
            raise ValueError(f"key {key!r} twice, or not a string")
        first = offset + len(text[counted:start].encode())
        offset, counted = first + len(text[start:stop].encode()), stop
        spans[key] = (first, offset)
        at = _skip(text, stop)
        if not text.startswith("}", at):
            at = _expect(text, at, ",")
            if text.startswith("}", at):
                raise ValueError("a comma before the end")
    if text[at + 1 :].strip(_WHITESPACE):
        raise ValueError("something follows the object")
    return spans


def _expect(text: str, at: int, character: str) -> int:
    at = _skip(text, at)
    if not text.startswith(character, at):
        raise ValueError(f"expected {character!r} at character {at}")
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _WHITESPACE:
        at += 1
    return at


def _items(request: Request, _: Conversation) -> list[str]:
    items = request.body.get("input")
    if not isinstance(items, list):
        return ["`input` is not an array"]
    return [
        f"input[{index}] is not an object with a `type`"
        for index, item in enumerate(items)
        if not isinstance(item, dict) or not isinstance(item.get("type"), str) or not item["type"]
    ]


def _pairs(request: Request, _: Conversation) -> list[str]:
    waiting: list[tuple[str, str]] = []
    problems: list[str] = []
    for item in request.input:
        kind, call_id = str(item.get("type")), str(item.get("call_id"))
        if kind in _OUTPUT_OF:
            waiting.append((call_id, _OUTPUT_OF[kind]))
        elif kind in _OUTPUT_OF.values():
            if (call_id, kind) in waiting:
                waiting.remove((call_id, kind))
            elif call_id in [name for name, _ in waiting]:
                problems.append(f"{kind} answers a call of another kind: {call_id}")
            else:
                problems.append(f"output without a call before it: {call_id}")
    return problems + [f"call without output: {call_id}" for call_id, _ in waiting]


def _order(request: Request, _: Conversation) -> list[str]:
    waiting: deque[str] = deque()
    for item in request.input:
        kind, call_id = str(item.get("type")), str(item.get("call_id"))
        if kind in _OUTPUT_OF:
            waiting.append(call_id)
        elif kind in _OUTPUT_OF.values() and call_id in waiting:
            if waiting[0] != call_id:
                return [f"output of {call_id} comes before the output of {waiting[0]}, which was called first"]
            waiting.popleft()
    return []


def _prefix(request: Request, past: Conversation) -> list[str]:
    if past.last is None:
        return []
    before, now = past.last.input_bytes[:-1].rstrip(), request.input_bytes
    if now.startswith(before):
        return []
    at = next(i for i, (old, new) in enumerate(zip(before + b"\0", now + b"\1", strict=False)) if old != new)
    return [
        f"`input` does not extend the one before it: differs at byte {at}: "
        f"{before[max(0, at - 40) : at + 80]!r} became {now[max(0, at - 40) : at + 80]!r}"
    ]


def _head(request: Request, past: Conversation) -> list[str]:
    last = past.last
    if last is None or any(last.part(key) != request.part(key) for key in ("model", "instructions")):
        return []
    return [] if last.head == request.head else [f"bytes before `input` changed: {last.head!r} → {request.head!r}"]


def _replay(request: Request, past: Conversation) -> list[str]:
    items = iter(request.input)
    return [
        f"an item the model sent did not come back as it was: {sent}"
        for sent in past.answered
        if isinstance(sent.get("type"), str) and not any(item == sent for item in items)
    ][:1]


def _tools(request: Request, past: Conversation) -> list[str]:
    last = past.last
    if last is None or last.part("tools") == request.part("tools") or last.part("model") != request.part("model"):
        return []
    before, now = last.body.get("tools", []), request.body.get("tools", [])
    if now[: len(before)] == before:
        return []  # a server that was met for the first time has brought some
    return ["`tools` changed between two requests of one thread"]


def _cache_key(request: Request, past: Conversation) -> list[str]:
    key = request.body.get("prompt_cache_key")
    if not isinstance(key, str) or not key:
        return [f"`prompt_cache_key` is {key!r}"]
    if key != request.thread:
        return [f"`prompt_cache_key` is {key!r}, the thread is {request.thread!r}"]
    return []


def _store(request: Request, _: Conversation) -> list[str]:
    return [] if request.body.get("store") is False else [f"`store` is {request.body.get('store')!r}"]


def _stream(request: Request, _: Conversation) -> list[str]:
    return [] if request.body.get("stream") is True else [f"`stream` is {request.body.get('stream')!r}"]


def _include(request: Request, _: Conversation) -> list[str]:
    found = request.body.get("include")
    return [] if found == ["reasoning.encrypted_content"] else [f"`include` is {found!r}"]


def _previous_response_id(request: Request, _: Conversation) -> list[str]:
    return ["`previous_response_id` is sent"] if "previous_response_id" in request.body else []


def _content_type(request: Request, _: Conversation) -> list[str]:
    found = request.headers.get("content-type", "")
    return [] if found.split(";")[0].strip() == "application/json" else [f"content-type is {found!r}"]


CHECKS: Final[dict[str, Callable[[Request, Conversation], list[str]]]] = {
    "items": _items,
    "pairs": _pairs,
    "order": _order,
    "prefix": _prefix,
    "head": _head,
    "replay": _replay,
    "tools": _tools,
    "cache_key": _cache_key,
    "store": _store,
    "stream": _stream,
    "include": _include,
    "previous_response_id": _previous_response_id,
    "content_type": _content_type,
}

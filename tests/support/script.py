"""The words a test scripts the fake model with: events of one answer, and what can go wrong with it.

An answer is a list. A dict in it is one SSE event; the other elements say what happens on the connection.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from tests.support.fake_responses import Request

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Raw:
    """Bytes put into the body of the answer as they are."""

    content: bytes


@dataclass(frozen=True)
class Hang:
    """Silence until the event is set, or for so many seconds; the server's exit ends it in any case."""

    until: threading.Event | float
    before_headers: bool = False


@dataclass(frozen=True)
class Cut:
    """Close the connection here, in the middle of the body or before the first byte."""

    reset: bool = False


@dataclass(frozen=True)
class End:
    """Finish the HTTP answer properly, without `response.completed`."""


@dataclass(frozen=True)
class Headers:
    """Headers of the answer; a value of None takes a default one away."""

    values: Mapping[str, str | None]
    status: int = 200


@dataclass(frozen=True)
class Answer:
    """A whole answer that is not a stream."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Element: TypeAlias = Json | Raw | Hang | Cut | End | Headers | Answer
Stream: TypeAlias = Sequence[Element]
Play: TypeAlias = "Stream | Answer | Callable[[Request], Stream | Answer]"


@dataclass(frozen=True)
class Repeat:
    """The last entry of a script: played for every further request."""

    play: Play


def repeat(play: Play) -> Repeat:
    return Repeat(play)


# Items


def item(value: Json) -> Json:
    """`response.output_item.done` for any item, known or not."""
    return {"type": "response.output_item.done", "item": value}


def say(text: str, *, id: str = "msg_1", phase: str | None = None) -> Json:
    content = [{"type": "output_text", "annotations": [], "text": text}]
    message: Json = {"type": "message", "id": id, "role": "assistant", "content": content}
    return item(message if phase is None else {**message, "phase": phase})


def call(call_id: str, name: str, arguments: Json | str) -> Json:
    """A function call; arguments given as a string go out as they are, JSON or not."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return item({"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": name, "arguments": text})


def shell(call_id: str, command: str, **arguments: Any) -> Json:
    """A call of a command, run as it is."""
    return call(call_id, "exec_command", {"cmd": command, "login": False, **arguments})


def custom_call(call_id: str, name: str, text: str) -> Json:
    return item({"type": "custom_tool_call", "id": f"ctc_{call_id}", "call_id": call_id, "name": name, "input": text})


def reasoning(blob: str, *summaries: str, id: str = "rs_1") -> Json:
    parts = [{"type": "summary_text", "text": summary} for summary in summaries]
    return item({"type": "reasoning", "id": id, "summary": parts, "encrypted_content": blob})


def web_search(query: str, *, id: str = "ws_1") -> Json:
    action = {"type": "search", "query": query}
    return item({"type": "web_search_call", "id": id, "status": "completed", "action": action})


# Other events


def created(response_id: str = "resp_1") -> Json:
    return {"type": "response.created", "response": {"id": response_id}}


def added(value: Json) -> Json:
    """`response.output_item.added` for an item, or for the event that will finish it."""
    return {"type": "response.output_item.added", "item": value.get("item", value)}


def delta(text: str) -> Json:
    return {"type": "response.output_text.delta", "delta": text}


def reasoning_delta(text: str, *, index: int = 0) -> Json:
    return {"type": "response.reasoning_summary_text.delta", "delta": text, "summary_index": index}


def arguments_delta(text: str, *, custom: bool = False) -> Json:
    """A piece of a tool call's arguments, or of a custom tool's input."""
    kind = "custom_tool_call_input" if custom else "function_call_arguments"
    return {"type": f"response.{kind}.delta", "delta": text}


def tokens(value: int, taken: int, *, cached: int = 0, written: int = 0, reasoning: int = 0) -> Json:
    """A `usage` object; `cached` and `written` are the part of `given` that came from or went into the cache."""
    return {
        "input_tokens": value,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": taken,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": value + taken,
    }


_NO_TOKENS = tokens(0, 0)


def completed(usage: Json | None = _NO_TOKENS, *, end_turn: bool | None = None, response_id: str = "resp_1") -> Json:
    """`response.completed`; usage None leaves the field out."""
    response: Json = {"id": response_id}
    if usage is not None:
        response["usage"] = usage
    if end_turn is not None:
        response["end_turn"] = end_turn
    return {"type": "response.completed", "response": response}


def failed(code: str | None, message: str = "") -> Json:
    """`response.failed`; code None sends no error object."""
    error = None if code is None else {"code": code, "message": message}
    return {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": error}}


def incomplete(reason: str) -> Json:
    response = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": reason}}
    return {"type": "response.incomplete", "response": response}


def error_event(code: str, message: str) -> Json:
    """A top-level `error` event."""
    return {"type": "error", "code": code, "message": message, "param": None}


# The connection


def raw(content: bytes) -> Raw:
    return Raw(content)


def hang(until: threading.Event | float) -> Hang:
    return Hang(until)


def stall_headers(until: threading.Event | float) -> Hang:
    """As the first element: take the request and keep silent before the status line."""
    return Hang(until, before_headers=True)


def cut() -> Cut:
    return Cut()


def reset() -> Cut:
    """Like `cut`, with a TCP reset."""
    return Cut(reset=True)


def end() -> End:
    return End()


def headers(values: Mapping[str, str | None], *, status: int = 200) -> Headers:
    return Headers(values, status)


def status(code: int, body: Json | str | bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP answer; a dict becomes JSON with its content type."""
    value = dict(headers or {})
    if isinstance(body, dict):
        return Answer(code, json.dumps(body).encode(), {"content-type": "application/json", **value})
    return Answer(code, body.encode() if isinstance(body, str) else body, {"content-type": "text/plain", **value})


def api_error(code: int, message: str, *, kind: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """The error body of the Responses API: `{"error": {"message", "type", "code"}}`."""
    return status(code, {"error": {"message": message, "type": kind, "code": kind or None}}, headers)


def html(page: str, code: int = 200) -> Answer:
    return Answer(code, page.encode(), {"content-type": "text/html; charset=utf-8"})


def redirect(url: str, code: int = 307) -> Answer:
    return Answer(code, b"", {"location": url})

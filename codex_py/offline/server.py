"""The offline model's server: `POST /v1/responses` and `GET /v1/models` on a loopback port of its own.

It speaks just enough HTTP/1.1 for this program's own client, and keeps nothing between two requests: an answer depends
on the request's body alone.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Generator, Iterator
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.offline.conversation import BodyError, last_answer_id, read_conversation
from codex_py.offline.rules import answer
from codex_py.offline.steps import Call
from codex_py.protocol.encoding import as_object, decode_json, encode_json

_HEAD_LIMIT: Final = 64 * 1024
# Above this size a body is read in a thread, so that the loop it shares with the client goes on.
_SMALL_BODY: Final = 256 * 1024
MODEL_NAME: Final = "offline-rules"
_PIECE: Final = re.compile(r"\s*\S{1,200}(?:\s+\S{1,40}){0,5}\s*|\s+")
_BYTES_PER_TOKEN: Final = 4
# The events of an item; gives back the item as it is in the end.
_ItemEvents: TypeAlias = Generator[dict[str, Any], None, dict[str, Any]]


class OfflineModel:
    """An async context manager; `base_url` is valid inside it. Leaving it ends every connection."""

    def __init__(self) -> None:
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:PORT/v1`."""
        if self._server is None:
            raise RuntimeError("the offline model is not running")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aenter__(self) -> OfflineModel:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_LIMIT)
        return self

    async def __aexit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if server is not None:
            await server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.get_running_loop().create_task(_serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests until the client leaves or sends what cannot be understood."""
    try:
        while request := await _read_request(reader):
            await _respond(request, writer)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        # The client went away, or is none of ours: there is nobody to tell.
        return
    finally:
        writer.close()


class _Request(NamedTuple):
    """`target` is the method and the path, without its query."""

    target: str
    body: bytes


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    """The next request; None when the client is gone.

    Raise `ValueError` for what is not one, `asyncio.IncompleteReadError` when the client leaves in the middle.
    """
    if reader.at_eof():
        return None
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").rstrip("\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return _Request(f"{method} {target.partition('?')[0]}", body)


async def _respond(request: _Request, writer: asyncio.StreamWriter) -> None:
    match request.target:
        case "GET /v1/models":
            model = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "codex-py"}
            writer.write(_json_response(200, {"object": "list", "data": [model]}))
        case "POST /v1/responses":
            await _answer(request.body, writer)
        case _:
            writer.write(_error_response(404, f"there is no `{request.target[:200]}` here"))


async def _answer(raw: bytes, writer: asyncio.StreamWriter) -> None:
    is_small = len(raw) <= _SMALL_BODY
    try:
        body, reply = _find_reply(raw) if is_small else await asyncio.to_thread(_find_reply, raw)
    except BodyError as error:
        writer.write(_error_response(400, str(error)))
        return
    last = last_answer_id(body)
    # Everything before the model's last answer was in the request that got that answer.
    cached = max(0, raw.find(last.encode("utf-8", "replace"))) if last else 0
    events = _response_events(reply, request_bytes=len(raw), cached_bytes=cached)
    if body.get("stream") is not True:
        writer.write(_json_response(200, [*events][-1]["response"]))
        return
    writer.write(_head(200, "text/event-stream; charset=utf-8", "transfer-encoding: chunked"))
    for number, event in enumerate(events):
        writer.write(_chunk(_encode_event(event, number)))
        await writer.drain()
    writer.write(_chunk(b""))


def _find_reply(raw: bytes) -> tuple[dict[str, Any], Call | str]:
    """The body and the reply to it. Raise `BodyError`."""
    try:
        body = decode_json(raw)
    except ValueError as error:
        raise BodyError("the body is not JSON") from error
    return as_object(body), answer(read_conversation(body))


def _json_response(status: int, value: object) -> bytes:
    """A whole response with a JSON body."""
    body = encode_json(value)
    return _head(status, "application/json", f"content-length: {len(body)}") + body


def _error_response(status: int, message: str) -> bytes:
    """A refusal in the shape that providers use."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return _json_response(status, {"error": error})


def _chunk(body: bytes) -> bytes:
    """One chunk of a streamed body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def _head(status: int, content_type: str, length: str) -> bytes:
    reason = HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{length}\r\n\r\n".encode("latin-1")


def _response_events(reply: Call | str, *, request_bytes: int, cached_bytes: int) -> Iterator[dict[str, Any]]:
    """Every event of the answer in order, `response.completed` last. Ids are fresh; a token is four bytes."""
    response: dict[str, Any] = {"id": f"resp_{_new_id()}", "object": "response", "created_at": int(time.time())}
    response |= {"status": "in_progress", "model": MODEL_NAME, "output": []}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    item = yield from (_call_events(reply) if isinstance(reply, Call) else _message_events(reply))
    sizes = (request_bytes, cached_bytes, len(encode_json([item])))
    sent, cached, received = (-(-size // _BYTES_PER_TOKEN) for size in sizes)
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": min(cached, sent)},
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + received,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def _encode_event(event: dict[str, Any], number: int) -> bytes:
    """One event as server-sent bytes."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode_json({**event, "sequence_number": number}))


def _message_events(text: str) -> _ItemEvents:
    location = {"output_index": 0, "item_id": f"msg_{_new_id()}"}
    item: dict[str, Any] = {"type": "message", "id": location["item_id"], "status": "in_progress"}
    item |= {"role": "assistant", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    content: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    inside = {**location, "content_index": 0}
    yield {"type": "response.content_part.added", **inside, "part": content}
    for piece in _PIECE.findall(text):
        yield {"type": "response.output_text.delta", **inside, "delta": piece}
    yield {"type": "response.output_text.done", **inside, "text": text}
    content = {**content, "text": text}
    yield {"type": "response.content_part.done", **inside, "part": content}
    item = {**item, "status": "completed", "content": [content]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    return item


def _call_events(call: Call) -> _ItemEvents:
    item_type, field = ("custom_tool_call", "input") if call.is_custom else ("function_call", "arguments")
    item_id, call_id = f"{item_type[0]}c_{_new_id()}", f"call_{_new_id()}"
    item = {"type": item_type, "id": item_id, "status": "in_progress", "call_id": call_id}
    item |= {"name": call.tool, field: ""}
    location = {"output_index": 0, "item_id": item["id"]}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": f"response.{item_type}_{field}.delta", **location, "delta": call.payload}
    yield {"type": f"response.{item_type}_{field}.done", **location, field: call.payload}
    item = {**item, "status": "completed", field: call.payload}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    return item


def _new_id() -> str:
    """A unique id: a conversation may hold the same prompt, and so the same calls, many times."""
    return os.urandom(12).hex()

"""The offline model's server: `POST /v1/responses` and `GET /v1/models` on a loopback port of its own.

It speaks just enough HTTP/1.1 for one client on this machine, and keeps nothing between two requests: an answer depends
on the request's body alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, NamedTuple

from codex_py.offline.conversation import BodyError, last_answer_id, read_conversation
from codex_py.offline.rules import answer
from codex_py.offline.steps import Call
from codex_py.offline.stream import MODEL_NAME, encode_event, response_events
from codex_py.protocol.encoding import as_object, decode_json, encode_json

_HEAD_LIMIT: Final = 64 * 1024
BODY_LIMIT: Final = 32 * 1024 * 1024
# How much, and for how long, is read and thrown away of a request that was refused.
_DRAIN_LIMIT: Final = 256 * 1024 * 1024
_DRAIN_SECONDS: Final = 3.0
_METHODS: Final = (("/v1/responses", "POST"), ("/v1/models", "GET"))
# Above this size a body is read in a thread, so that the loop it shares with the client goes on.
_SMALL_BODY: Final = 256 * 1024
_IDLE_SECONDS: Final = 600.0


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
    """Answer requests until the client leaves or says something that cannot be understood."""
    try:
        goes_on = True
        while goes_on:
            try:
                async with asyncio.timeout(_IDLE_SECONDS):
                    request = await _read_request(reader)
                if request is None:
                    return
                goes_on = request.keep_alive
                await _respond(request, writer)
            except _Refusal as refusal:
                goes_on = goes_on and not refusal.final
                writer.write(_error_response(refusal, keep_alive=goes_on))
                if refusal.final:
                    await _hang_up(reader, writer)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
        # The client went away; there is nobody to tell.
        return
    finally:
        writer.close()


async def _respond(request: _Request, writer: asyncio.StreamWriter) -> None:
    allowed = dict(_METHODS).get(request.path)
    if allowed is None:
        raise _Refusal(404, f"there is no `{request.path[:200]}` here")
    if request.method != allowed:
        raise _Refusal(405, f"`{request.path}` takes {allowed} only", allow=allowed)
    if request.path == "/v1/models":
        model = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "codex-py"}
        models = {"object": "list", "data": [model]}
        writer.write(_json_response(200, models, keep_alive=request.keep_alive))
        return
    is_small = len(request.body) <= _SMALL_BODY
    body, reply = _answer(request.body) if is_small else await asyncio.to_thread(_answer, request.body)
    await _write_reply(request, body, reply, writer)


def _answer(raw: bytes) -> tuple[dict[str, Any], Call | str]:
    try:
        body = decode_json(raw)
    except ValueError as error:
        raise _Refusal(400, "the body is not JSON") from error
    try:
        return as_object(body), answer(read_conversation(body))
    except BodyError as error:
        raise _Refusal(400, str(error)) from error


async def _write_reply(
    request: _Request, body: dict[str, Any], reply: Call | str, writer: asyncio.StreamWriter
) -> None:
    last = last_answer_id(body)
    # Everything before the model's last answer was in the request that got that answer.
    cached = max(0, request.body.find(last.encode("utf-8", "replace"))) if last else 0
    events = response_events(reply, request_bytes=len(request.body), cached_bytes=cached)
    if body.get("stream") is not True:
        response = [*events][-1]["response"]
        writer.write(_json_response(200, response, keep_alive=request.keep_alive))
        return
    writer.write(_stream_head(keep_alive=request.keep_alive))
    for number, event in enumerate(events):
        writer.write(_chunk(encode_event(event, number)))
        await writer.drain()
    writer.write(_chunk(b""))


class _Request(NamedTuple):
    """`path` is without its query."""

    method: str
    path: str
    body: bytes
    keep_alive: bool


class _Refusal(Exception):
    """The request cannot be answered. `final` says that the connection cannot be used after it."""

    def __init__(self, status: int, message: str, *, final: bool = False, allow: str = "") -> None:
        super().__init__(message)
        self.status, self.final, self.allow = status, final, allow


async def _read_request(reader: asyncio.StreamReader) -> _Request | None:
    """The next request; None when the client is gone. Raise `_Refusal` for what is not one, `ConnectionError` and
    `asyncio.IncompleteReadError` when the client leaves in the middle."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _Refusal(431, f"the request head is longer than {_HEAD_LIMIT} bytes", final=True) from None
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise _Refusal(400, "the request head is cut short", final=True) from None
        return None
    method, target, version, headers = _parse_head(head)
    close = "close" in headers.get("connection", "").lower()
    keep_alive = not close if version == "HTTP/1.1" else "keep-alive" in headers.get("connection", "").lower()
    body = await _read_body(reader, method, headers)
    return _Request(method, target.partition("?")[0], body, keep_alive)


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    first, *rest = head.decode("latin-1").rstrip("\r\n").lstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[0].isalpha() or not words[1].startswith("/"):
        raise _Refusal(400, "the request line is not HTTP", final=True)
    if words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        status = 505 if words[2].startswith("HTTP/") else 400
        raise _Refusal(status, "only HTTP/1.1 and HTTP/1.0 are spoken here", final=True)
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise _Refusal(400, "a header line is malformed", final=True)
        if name.lower() == "content-length" and headers.get("content-length", value.strip()) != value.strip():
            raise _Refusal(400, "there are two different lengths", final=True)
        headers[name.lower()] = value.strip()
    return words[0], words[1], words[2], headers


async def _read_body(reader: asyncio.StreamReader, method: str, headers: Mapping[str, str]) -> bytes:
    if "transfer-encoding" in headers:
        raise _Refusal(411, "send the body with a `content-length`, not in chunks", final=True)
    length_header = headers.get("content-length")
    if length_header is None:
        if method == "POST":
            raise _Refusal(411, "a `content-length` is needed", final=True)
        return b""
    if not (length_header.isascii() and length_header.isdigit() and len(length_header) < 19):
        raise _Refusal(400, "the `content-length` is not a number", final=True)
    length = int(length_header)
    if length > BODY_LIMIT:
        raise _Refusal(413, f"the body is longer than {BODY_LIMIT} bytes", final=True)
    return await reader.readexactly(length)


async def _hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End a connection so that a client that still writes can read the answer it was given: closing at once would
    reset the connection and take the answer with it."""
    writer.write_eof()
    left = _DRAIN_LIMIT
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while left > 0 and (got := await reader.read(_HEAD_LIMIT)):
                left -= len(got)
    except TimeoutError:
        return


def _json_response(status: int, value: object, *, keep_alive: bool, allow: str = "") -> bytes:
    """A whole response with a JSON body."""
    body = encode_json(value)
    extra = f"allow: {allow}\r\n" if allow else ""
    return _head(status, "application/json", f"content-length: {len(body)}\r\n{extra}", keep_alive=keep_alive) + body


def _error_response(refusal: _Refusal, *, keep_alive: bool) -> bytes:
    """A refusal in the shape that providers use."""
    error = {"message": str(refusal), "type": "invalid_request_error", "param": None, "code": None}
    return _json_response(refusal.status, {"error": error}, keep_alive=keep_alive, allow=refusal.allow)


def _stream_head(*, keep_alive: bool) -> bytes:
    """The head of an event stream; its body follows in chunks."""
    extra = "cache-control: no-store\r\ntransfer-encoding: chunked\r\n"
    return _head(200, "text/event-stream; charset=utf-8", extra, keep_alive=keep_alive)


def _chunk(body: bytes) -> bytes:
    """One chunk of a streamed body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def _head(status: int, content_type: str, extra: str, *, keep_alive: bool) -> bytes:
    reason = HTTPStatus(status).phrase
    connection = "keep-alive" if keep_alive else "close"
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{extra}connection: {connection}\r\n\r\n"
    return head.encode("latin-1")

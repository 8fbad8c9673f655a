"""The offline model's server: `POST /v1/responses` and `GET /v1/models` on a loopback port of its own.

It keeps nothing between two requests: an answer depends on the request's body alone.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final

from codex_py.offline.answers import answer
from codex_py.offline.conversation import BodyError, last_answer_id, read_conversation
from codex_py.offline.http import (
    HEAD_LIMIT,
    Refusal,
    Request,
    chunk,
    error_response,
    hang_up,
    json_response,
    read_request,
    stream_head,
)
from codex_py.offline.play import Reply
from codex_py.offline.stream import MODEL_NAME, encode_event, response_events, whole_response
from codex_py.protocol.encoding import as_object, decode_json

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
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD_LIMIT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
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
                    request = await read_request(reader, writer)
                if request is None:
                    return
                goes_on = request.keep_alive
                await _respond(request, writer)
            except Refusal as refusal:
                goes_on = goes_on and not refusal.final
                writer.write(error_response(refusal, keep_alive=goes_on))
                if refusal.final:
                    await hang_up(reader, writer)
            await writer.drain()
    except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
        # The client went away; there is nobody to tell.
        return
    finally:
        writer.close()


async def _respond(request: Request, writer: asyncio.StreamWriter) -> None:
    allowed = dict(_METHODS).get(request.path)
    if allowed is None:
        raise Refusal(404, f"there is no `{request.path[:200]}` here")
    if request.method != allowed:
        raise Refusal(405, f"`{request.path}` takes {allowed} only", allow=allowed)
    if request.path == "/v1/models":
        models = {
            "object": "list",
            "data": [{"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": "codex-py"}],
        }
        writer.write(json_response(200, models, keep_alive=request.keep_alive))
        return
    if len(request.body) <= _SMALL_BODY:
        body, reply = _answer(request.body)
    else:
        body, reply = await asyncio.to_thread(_answer, request.body)
    await _write_reply(request, body, reply, writer)


def _answer(raw: bytes) -> tuple[dict[str, Any], Reply]:
    try:
        body = decode_json(raw)
    except ValueError as error:
        raise Refusal(400, "the body is not JSON") from error
    try:
        return as_object(body), answer(read_conversation(body))
    except BodyError as error:
        raise Refusal(400, str(error)) from error


async def _write_reply(request: Request, body: dict[str, Any], reply: Reply, writer: asyncio.StreamWriter) -> None:
    last = last_answer_id(body)
    # Everything before the model's last answer was in the request that got that answer.
    cached = max(0, request.body.find(last.encode("utf-8", "replace"))) if last else 0
    if body.get("stream") is not True:
        response = whole_response(reply, request_bytes=len(request.body), cached_bytes=cached)
        writer.write(json_response(200, response, keep_alive=request.keep_alive))
        return
    writer.write(stream_head(keep_alive=request.keep_alive))
    events = response_events(reply, request_bytes=len(request.body), cached_bytes=cached)
    for number, event in enumerate(events):
        writer.write(chunk(encode_event(event, number)))
        await writer.drain()
    writer.write(chunk(b""))

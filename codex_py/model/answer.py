"""Reading one HTTP answer: its server-sent events as they come, or what it says instead, within the idle deadline.

httpx-sse reads the events, of bytes that are counted first: docs/decisions/001-httpx-sse-reads-the-streams.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Final

import httpx
from httpx_sse import EventSource

from codex_py.errors import ModelError
from codex_py.model.client import ResponseEvent
from codex_py.model.failures import MAX_ERROR_BODY, Server, not_readable, unexpected_answer
from codex_py.model.http import HTTP_ERRORS, broken_stream, read_body
from codex_py.model.wires import Decoder

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
# This much of an unfinished event counts as a sign of life, like an event: a large one may take its time. Less does
# not, so that comments and single bytes cannot keep a dead answer alive.
_PROGRESS_BYTES: Final = 64 * 1024
_ERROR_BODY_SECONDS: Final = 10.0
_DRAIN_BYTES: Final = 16 * 1024
_DRAIN_SECONDS: Final = 0.05
# Asked for is none; httpx undoes these.
_READABLE_CODINGS: Final = frozenset({"", "identity", "gzip", "deflate"})
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")
_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")
# A stream is UTF-8 whatever its server says; this codec skips a byte order mark.
_STREAM_TYPE: Final = {"content-type": "text/event-stream; charset=utf-8-sig"}


class ResponseBody:
    """The body of a 2xx answer. `idle_timeout` is seconds without an event."""

    def __init__(self, response: httpx.Response, *, server: Server, idle_timeout: float) -> None:
        self._response = response
        self._chunks = response.aiter_bytes()
        self._server = server
        self._idle_timeout = idle_timeout
        self._deadline = 0.0
        self._failure: ModelError | None = None

    async def events(self, decoder: Decoder) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events until the body ends; raise `ModelError` for a broken, silent or foreign one."""
        coding = self._response.headers.get("content-encoding", "").strip().lower()
        if coding not in _READABLE_CODINGS:
            raise not_readable(coding, url=self._server.url)
        self._renew_deadline()
        first = await self._next()
        if not self._is_stream(first):
            for event in await self._read_whole(first, decoder):
                yield event
            for event in decoder.finish():
                yield event
            return
        counted = httpx.Response(200, headers=_STREAM_TYPE, content=self._counted(first))
        async with aclosing(EventSource(counted).aiter_sse()) as sent:
            async for event in sent:
                # A field alone, such as `id`, is no event of an API.
                if event.data:
                    for decoded in decoder.decode(event.data):
                        yield decoded
                    # The time the caller took is not the server's.
                    self._renew_deadline()
        last = decoder.finish()
        # Nothing is missing of an answer that has said its end, whatever became of the connection.
        if self._failure is not None and not last:
            raise self._failure
        for event in last:
            yield event

    async def drain(self) -> None:
        """Read the little that may follow the last event, so that the connection can be used again."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await read_body(self._chunks, limit=_DRAIN_BYTES)
        except HTTP_ERRORS:
            # It was only for the next request's sake, which will open a new connection.
            return

    async def _counted(self, chunk: bytes) -> AsyncGenerator[bytes, None]:
        """The chunks, none of which makes an event larger than 64 MiB. A failure ends them, and is noted."""
        pending, progress, before = 0, 0, b""
        try:
            while chunk:
                seen = before + chunk
                ends = [at + len(mark) for mark in _BLANK_LINES if (at := seen.rfind(mark)) >= 0]
                pending = len(seen) - max(ends) if ends else pending + len(chunk)
                if pending > MAX_EVENT_BYTES:
                    raise _too_large("one event of the answer")
                progress = min(progress, pending)
                if pending >= progress + _PROGRESS_BYTES:
                    progress = pending
                    self._renew_deadline()
                before = seen[-2:]
                yield chunk
                chunk = await self._next()
        except ModelError as error:
            self._failure = error
            return
        # The end of the body ends the last event too: it is one JSON text, which shows whether it is whole.
        yield b"\n\n"

    def _is_stream(self, first: bytes) -> bool:
        content_type = self._content_type
        if content_type == "text/event-stream" or not (first or content_type):
            return True
        # Some servers name no type or a wrong one; the first bytes tell.
        start = first.removeprefix(b"\xef\xbb\xbf").lstrip()
        return any(start.startswith(field) or (start and field.startswith(start)) for field in _FIELDS)

    async def _read_whole(self, first: bytes, decoder: Decoder) -> Sequence[ResponseEvent]:
        """The events of an answer that is no stream. Raises `ModelError` for what is no answer either."""
        body = first
        if self._content_type.endswith("json") and first.lstrip().startswith(b"{"):
            body = await self._read_json(first)
            if (events := decoder.decode_body(body)) is not None:
                return events
        else:
            body += await read_error_body(self._chunks)
        raise unexpected_answer(
            self._response.status_code,
            self._response.headers,
            body[:MAX_ERROR_BODY],
            server=self._server,
            expected="an event stream",
        )

    async def _read_json(self, first: bytes) -> bytes:
        body, chunk = bytearray(), first
        while chunk:
            body += chunk
            if len(body) > MAX_EVENT_BYTES:
                raise _too_large("the answer")
            self._renew_deadline()
            chunk = await self._next()
        return bytes(body)

    @property
    def _content_type(self) -> str:
        return self._response.headers.get("content-type", "").partition(";")[0].strip().lower()

    def _renew_deadline(self) -> None:
        self._deadline = asyncio.get_running_loop().time() + self._idle_timeout

    async def _next(self) -> bytes:
        """The next bytes of the body; empty at its end. Raises `ModelError`."""
        try:
            chunk = await anext(self._chunks, b"")
            # httpx ends a silence; bytes that make no event are none of its business.
            if chunk and asyncio.get_running_loop().time() > self._deadline:
                raise TimeoutError
        except HTTP_ERRORS as error:
            raise broken_stream(error, idle_timeout=self._idle_timeout) from error
        return chunk


async def read_error_body(chunks: AsyncIterator[bytes]) -> bytes:
    """What an answer says when it is no stream: the first 64 KiB, or as much as comes without undue delay."""
    body = bytearray()
    try:
        async with asyncio.timeout(_ERROR_BODY_SECONDS):
            while len(body) < MAX_ERROR_BODY and (chunk := await anext(chunks, b"")):
                body += chunk
    except HTTP_ERRORS:
        # The status alone has to do.
        pass
    return bytes(body[:MAX_ERROR_BODY])


def _too_large(what: str) -> ModelError:
    limit = MAX_EVENT_BYTES // (1024 * 1024)
    return ModelError(f"{what} is over {limit} MiB", retryable=False, streaming=True)

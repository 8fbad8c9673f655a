"""Reading one HTTP answer: its events as they come, or what it says instead. Every wait has the idle deadline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from codex_py.model.failures import MAX_ERROR_BODY, not_a_stream, not_readable
from codex_py.model.http import httpx
from codex_py.model.sse import SseParser
from codex_py.model.stream import ResponseEvent, parse_event
from codex_py.model.transport import broken_stream

# This much of an unfinished event counts as a sign of life, like an event: a large one may take its time. Less does
# not, so that comments and single bytes cannot keep a dead answer alive.
_PROGRESS_BYTES: Final = 64 * 1024
_ERROR_BODY_SECONDS: Final = 10.0
_DRAIN_BYTES: Final = 16 * 1024
_DRAIN_SECONDS: Final = 0.05
# Asked for is none; these httpx undoes by itself, event by event.
_READABLE_CODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


class ResponseBody:
    """The body of a 2xx answer. `url` is shown in messages; `idle_timeout` is seconds without an event."""

    def __init__(self, response: httpx.Response, *, url: str, idle_timeout: float) -> None:
        self._response = response
        self._url = url
        self._idle_timeout = idle_timeout
        self._chunks: AsyncIterator[bytes] = response.aiter_bytes()

    async def events(self) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events until the body ends; raise `ModelError` for a broken, silent or foreign one."""
        coding = self._response.headers.get("content-encoding", "").strip().lower()
        if coding not in _READABLE_CODINGS:
            raise not_readable(coding, url=self._url)
        parser = SseParser()
        first: bytes | None = b""
        while first == b"":
            first = await self._next(self._deadline())
        await self._check_stream(first)
        chunk, counted, deadline = first, 0, self._deadline()
        while chunk is not None:
            # Popped one by one, so that nobody holds a large event while it is parsed.
            ready = parser.feed(chunk)
            chunk = b""
            if ready or parser.pending >= counted + _PROGRESS_BYTES:
                counted, deadline = parser.pending, self._deadline()
            ready.reverse()
            while ready:
                event = parse_event(ready.pop())
                if event is not None:
                    yield event
                    # The time the caller took is not the server's.
                    event, deadline = None, self._deadline()
            chunk = await self._next(deadline)
        for data in parser.finish():
            event = parse_event(data)
            if event is not None:
                yield event

    async def drain(self) -> None:
        """Read the little that may follow the last event, so that the connection can be used again."""
        left = _DRAIN_BYTES
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while left > 0 and (chunk := await anext(self._chunks, None)) is not None:
                    left -= len(chunk)
        except (httpx.HTTPError, OSError):
            # It was only for the next request's sake, which will open a new connection.
            return

    async def _check_stream(self, first: bytes | None) -> None:
        headers = self._response.headers
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if content_type == "text/event-stream" or (first is None and not content_type):
            return
        # Some servers name no type or a wrong one; the first bytes tell.
        start = (first or b"").removeprefix(b"\xef\xbb\xbf").lstrip()
        if any(start.startswith(field) or (start and field.startswith(start)) for field in _FIELDS):
            return
        body = (first or b"") + await read_error_body(self._chunks)
        raise not_a_stream(self._response.status_code, headers, body[:MAX_ERROR_BODY], url=self._url)

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._idle_timeout

    async def _next(self, deadline: float) -> bytes | None:
        try:
            async with asyncio.timeout_at(deadline):
                return await anext(self._chunks, None)
        except (httpx.HTTPError, OSError) as error:
            raise broken_stream(error, idle_timeout=self._idle_timeout) from error


async def read_error_body(chunks: AsyncIterator[bytes]) -> bytes:
    """What an answer says when it is no stream: the first 64 KiB, or as much as comes without undue delay."""
    body = bytearray()
    try:
        async with asyncio.timeout(_ERROR_BODY_SECONDS):
            while len(body) < MAX_ERROR_BODY and (chunk := await anext(chunks, None)) is not None:
                body += chunk
    except (httpx.HTTPError, OSError):
        # The status alone has to do.
        pass
    return bytes(body[:MAX_ERROR_BODY])

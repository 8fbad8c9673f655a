"""Reading one HTTP answer: its server-sent events as they come, or what it says instead, within the idle deadline.

Follows the HTML standard, section 9.2, for what the Responses API uses of it: only `data` matters here.
Why this is not httpx-sse: docs/decisions/001-own-sse-parser.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from codex_py.errors import ModelError
from codex_py.model.client import ResponseEvent
from codex_py.model.exchange import Answer, HttpError
from codex_py.model.failures import MAX_ERROR_BODY, Server, broken_stream, not_readable, unexpected_answer
from codex_py.model.wires import Decoder

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class SseParser:
    """Feed it chunks of any size; it gives back the data of each event that is complete, as bytes.

    Line ends may be LF, CRLF or CR, also split over two chunks; a byte order mark, comments and all fields but `data`
    are skipped; events without data are none. Raises `ModelError` for an event, or a line, of more than 64 MiB.
    """

    __slots__ = ("_after_cr", "_data", "_data_size", "_line", "_line_size", "_start")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self._start: bytes | None = b""

    @property
    def pending(self) -> int:
        """Bytes held for an event that is not complete yet."""
        return self._line_size + self._data_size

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the data of the events they complete, in order."""
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        events: list[bytes] = []
        if lines:
            if self._line:
                lines[0] = self._whole_line(lines[0])
            for line in lines:
                if line:
                    self._take(line)
                elif self._data:
                    self._dispatch(events)
        self._keep(rest)
        return events

    def finish(self) -> list[bytes]:
        """The stream has ended: what stands there without its empty line.

        The standard drops it. Each event here is one JSON text, which shows by itself whether it is whole, and the
        event a careless server ends on is the one that makes the whole answer count.
        """
        if self._start:
            self._keep(self._start)
            self._start = None
        events: list[bytes] = []
        if self._line:
            self._take(self._whole_line(b""))
        if self._data:
            self._dispatch(events)
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
            self._check_size()

    def _whole_line(self, end: bytes) -> bytes:
        self._line.append(end)
        line = b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        return line

    def _take(self, line: bytes) -> None:
        if not line.startswith(b"data"):
            return
        if line.startswith(b"data: "):
            value = line[6:]
        elif line.startswith(b"data:"):
            value = line[5:]
        elif len(line) == 4:
            value = b""
        else:
            return
        self._data.append(value)
        self._data_size += len(value) + 1
        self._check_size()

    def _check_size(self) -> None:
        if self._line_size + self._data_size > MAX_EVENT_BYTES:
            limit = MAX_EVENT_BYTES // (1024 * 1024)
            raise ModelError(f"one event of the answer is over {limit} MiB", retryable=False, streaming=True)

    def _dispatch(self, events: list[bytes]) -> None:
        event = b"\n".join(self._data)
        self._data.clear()
        self._data_size = 0
        if event:
            events.append(event)


# This much of an unfinished event counts as a sign of life, like an event: a large one may take its time. Less does
# not, so that comments and single bytes cannot keep a dead answer alive.
_PROGRESS_BYTES: Final = 64 * 1024
_ERROR_BODY_SECONDS: Final = 10.0
_DRAIN_BYTES: Final = 16 * 1024
_DRAIN_SECONDS: Final = 0.05
# Asked for is none; these are undone, event by event.
_READABLE_CODINGS: Final = frozenset({"", "identity", "gzip", "x-gzip", "deflate"})
_FIELDS: Final = (b"data:", b"event:", b"id:", b"retry:", b":")


class ResponseBody:
    """The body of a 2xx answer. `idle_timeout` is seconds without an event."""

    def __init__(self, response: Answer, *, server: Server, idle_timeout: float) -> None:
        self._response = response
        self._server = server
        self._idle_timeout = idle_timeout

    async def events(self, decoder: Decoder) -> AsyncGenerator[ResponseEvent, None]:
        """Yield the events until the body ends; raise `ModelError` for a broken, silent or foreign one."""
        coding = self._response.headers.get("content-encoding", "").strip().lower()
        if coding not in _READABLE_CODINGS:
            raise not_readable(coding, url=self._server.url)
        parser = SseParser()
        first: bytes | None = b""
        while first == b"":
            first = await self._next(self._deadline())
        if not self._is_stream(first):
            for event in await self._read_whole(first or b"", decoder):
                yield event
            for event in decoder.finish():
                yield event
            return
        chunk, counted, deadline = first, 0, self._deadline()
        while chunk is not None:
            # Popped one by one, so that nobody holds a large event while it is parsed.
            ready = parser.feed(chunk)
            chunk = b""
            if ready or parser.pending >= counted + _PROGRESS_BYTES:
                counted, deadline = parser.pending, self._deadline()
            ready.reverse()
            while ready:
                for event in decoder.take_text(ready) or decoder.decode(ready.pop()):
                    yield event
                    # The time the caller took is not the server's.
                    event, deadline = None, self._deadline()
            try:
                chunk = await self._next(deadline)
            except ModelError:
                # Nothing is missing of an answer that has said its end, whatever became of the connection.
                if not (events := decoder.finish()):
                    raise
                for event in events:
                    yield event
                return
        for data in parser.finish():
            for event in decoder.decode(data):
                yield event
        for event in decoder.finish():
            yield event

    async def drain(self) -> None:
        """Read the little that may follow the last event, so that the connection can be used again."""
        left = _DRAIN_BYTES
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while left > 0 and (chunk := await self._response.read()):
                    left -= len(chunk)
        except (HttpError, OSError):
            # It was only for the next request's sake, which will open a new connection.
            return

    def _is_stream(self, first: bytes | None) -> bool:
        content_type = self._content_type
        if content_type == "text/event-stream" or (first is None and not content_type):
            return True
        # Some servers name no type or a wrong one; the first bytes tell.
        start = (first or b"").removeprefix(b"\xef\xbb\xbf").lstrip()
        return any(start.startswith(field) or (start and field.startswith(start)) for field in _FIELDS)

    async def _read_whole(self, first: bytes, decoder: Decoder) -> Sequence[ResponseEvent]:
        """The events of an answer that is no stream. Raises `ModelError` for what is no answer either."""
        body = first
        if self._content_type.endswith("json") and first.lstrip().startswith(b"{"):
            body = await self._read_json(first)
            if (events := decoder.decode_body(body)) is not None:
                return events
        else:
            body += await read_error_body(self._response)
        raise unexpected_answer(
            self._response.status,
            self._response.headers,
            body[:MAX_ERROR_BODY],
            server=self._server,
            expected="an event stream",
        )

    async def _read_json(self, first: bytes) -> bytes:
        chunks, size, deadline = [first], len(first), self._deadline()
        while size <= MAX_EVENT_BYTES and (chunk := await self._next(deadline)) is not None:
            chunks.append(chunk)
            size += len(chunk)
            deadline = self._deadline()
        if size > MAX_EVENT_BYTES:
            raise ModelError(
                f"the answer is over {MAX_EVENT_BYTES // (1024 * 1024)} MiB", retryable=False, streaming=True
            )
        return b"".join(chunks)

    @property
    def _content_type(self) -> str:
        return self._response.headers.get("content-type", "").partition(";")[0].strip().lower()

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._idle_timeout

    async def _next(self, deadline: float) -> bytes | None:
        try:
            async with asyncio.timeout_at(deadline):
                return await self._response.read() or None
        except (HttpError, OSError) as error:
            raise broken_stream(error, idle_timeout=self._idle_timeout) from error


async def read_error_body(answer: Answer) -> bytes:
    """What an answer says when it is no stream: the first 64 KiB, or as much as comes without undue delay."""
    body = bytearray()
    try:
        async with asyncio.timeout(_ERROR_BODY_SECONDS):
            while len(body) < MAX_ERROR_BODY and (chunk := await answer.read()):
                body += chunk
    except (HttpError, OSError):
        # The status alone has to do.
        pass
    return bytes(body[:MAX_ERROR_BODY])

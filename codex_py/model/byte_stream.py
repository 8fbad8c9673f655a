"""Bytes to and from one server over TCP, or TLS on top of it. Knows nothing of HTTP."""

from __future__ import annotations

import asyncio
import select
import ssl
from collections import deque
from typing import Final, cast

_READ_BYTES: Final = 64 * 1024
# Unread bytes above this make the kernel, and so the server, wait.
_HIGH_WATER: Final = 4 * _READ_BYTES
# After so many little reads in a row, each this soon after the one before, each read is put off for a moment, so that
# it brings more: being woken for every few letters of a long answer costs more than the letters.
_STREAK: Final = 64
_SOON_SECONDS: Final = 0.03
_LITTLE_BYTES: Final = 8 * 1024
_BREATH_SECONDS: Final = 0.02


class ByteStream(asyncio.BufferedProtocol):
    """A TCP connection with one user at a time. `seconds` bounds each wait; None does not."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._tcp: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._held_back = False
        self._streak = 0
        self._last_read = 0.0
        self._ended = False
        self._error: Exception | None = None
        self._must_drain = False
        self._waiter: asyncio.Future[None] | None = None

    async def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Agree on a key and check the certificate. Raises `OSError`, of which `ssl.SSLError` is one."""
        if self._transport is None:
            raise ConnectionResetError
        self._transport = await self._loop.start_tls(self._transport, self, context, server_hostname=host)

    async def read(self, seconds: float | None) -> bytes:
        """The next bytes, up to 64 KiB; empty at the end. Raises `OSError`, `TimeoutError`."""
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            await self._wait(seconds)
        chunk = self._chunks.popleft()
        self._size -= len(chunk)
        if self._held_back and self._size < _HIGH_WATER and self._transport is not None:
            self._held_back = False
            self._transport.resume_reading()
        return chunk

    def write(self, content: bytes) -> None:
        """Send without waiting. A failure shows when reading."""
        if self._transport is not None:
            self._transport.write(content)

    async def drain(self, seconds: float | None) -> None:
        """Wait until what was written has mostly left, or the server answers or hangs up without reading it all."""
        while self._must_drain and not self._chunks and not self._ended:
            await self._wait(seconds)

    def is_quiet(self) -> bool:
        """Whether the connection is open with nothing under way in either direction."""
        if self._transport is None or self._tcp is None or self._ended or self._chunks:
            return False
        if any(layer.is_closing() or layer.get_write_buffer_size() for layer in (self._transport, self._tcp)):
            return False
        # The end may have come while the loop was busy elsewhere, so that we have not been notified yet.
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        """Close at once; what was not sent yet is dropped. Safe to call more than once."""
        if self._tcp is not None:
            self._tcp.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = self._tcp = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._chunks.append(bytes(self._buffer[:nbytes]))
        self._size += nbytes
        if self._size >= _HIGH_WATER and not self._held_back and self._transport is not None:
            self._held_back = True
            self._transport.pause_reading()
        self._breathe(nbytes)
        self._wake()

    def eof_received(self) -> None:
        # asyncio closes our side now, but tells so only when all that was written has left.
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        self._error = exc
        self._wake()

    def pause_writing(self) -> None:
        self._must_drain = True

    def resume_writing(self) -> None:
        self._must_drain = False
        self._wake()

    def _breathe(self, nbytes: int) -> None:
        now = self._loop.time()
        is_next = nbytes < _LITTLE_BYTES and now - self._last_read < _SOON_SECONDS
        self._streak = self._streak + 1 if is_next else 0
        self._last_read = now
        if self._streak < _STREAK or self._held_back or self._transport is None:
            return
        self._transport.pause_reading()
        self._loop.call_later(_BREATH_SECONDS, self._read_on)

    def _read_on(self) -> None:
        self._last_read = self._loop.time()
        if not self._held_back and self._transport is not None:
            self._transport.resume_reading()

    async def _wait(self, seconds: float | None) -> None:
        waiter = self._waiter = self._loop.create_future()
        # Half the cost of `asyncio.timeout`, once for each event of a stream.
        timer = None if seconds is None else self._loop.call_later(seconds, _expire, waiter)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())

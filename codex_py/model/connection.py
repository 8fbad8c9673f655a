"""One HTTP/1.1 connection: reaching the server, the TLS handshake, then a request and its answer at a time.

Why this is not httpcore: docs/decisions/004-own-transport.md.
"""

from __future__ import annotations

import asyncio
import ipaddress
import select
import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final, cast

import h11

_NEXT_ADDRESS_SECONDS: Final = 0.25
# Family, kind, protocol, canonical name and address, as `getaddrinfo` gives them.
_Found = tuple[int, int, int, str, tuple[Any, ...]]


async def open_stream(host: str, port: int, tls: ssl.SSLContext | None) -> ByteStream:
    """Connect; with `tls`, as far as a checked certificate.

    Raises `OSError`. Nothing stays open when it fails or is cancelled.
    """
    try:
        stream = await (_to_address(host, port) if _is_address(host) else _to_name(host, port))
    except (UnicodeError, OverflowError) as error:
        # A label or a port that is too large for any address.
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from error
    if tls is not None:
        try:
            await stream.start_tls(tls, host)
        except BaseException:
            stream.close()
            raise
    return stream


async def _to_address(host: str, port: int) -> ByteStream:
    loop = asyncio.get_running_loop()
    stream = ByteStream(loop)
    try:
        await loop.create_connection(lambda: stream, host, port)
    except BaseException:
        stream.close()
        raise
    return stream


async def _to_name(host: str, port: int) -> ByteStream:
    """Try the addresses in turn, the next one when the one before fails or takes long; the first to answer wins.

    asyncio can do this too, but a cancelled race of its own may lose the socket that had just won.
    """
    addresses = await _addresses(host, port)
    running: set[asyncio.Task[ByteStream | OSError]] = set()
    try:
        while True:
            if addresses:
                running.add(asyncio.create_task(_attempt(addresses.pop(0), port)))
            patience = _NEXT_ADDRESS_SECONDS if addresses else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.remove(task)
                outcome = task.result()
                if isinstance(outcome, ByteStream):
                    return outcome
                if not running and not addresses:
                    raise outcome
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_unused_winner)


async def _attempt(address: str, port: int) -> ByteStream | OSError:
    try:
        return await _to_address(address, port)
    except OSError as error:
        return error


def _close_unused_winner(task: asyncio.Task[ByteStream | OSError]) -> None:
    if not task.cancelled() and isinstance(outcome := task.result(), ByteStream):
        outcome.close()


async def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a name, the kinds alternating: one kind may lead nowhere from here."""
    families: dict[int, list[str]] = {}
    for family, _, _, _, address in await _look_up(host, port):
        families.setdefault(family, []).append(str(address[0]))
    return [address for row in zip_longest(*families.values()) for address in row if address is not None]


async def _look_up(host: str, port: int) -> Sequence[_Found]:
    """Run `getaddrinfo` in a thread that is abandoned when the caller is cancelled.

    asyncio's own threads are waited for when the loop closes, and a resolver without an answer takes minutes.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Sequence[_Found]] = loop.create_future()

    def settle(found: Sequence[_Found], error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def look_up() -> None:
        found: Sequence[_Found] = ()
        failure: Exception | None = None
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError, OverflowError) as error:
            failure = error
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(settle, found, failure)

    threading.Thread(target=look_up, daemon=True).start()
    return await answer


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


_MAX_HEADER_BYTES: Final = 100 * 1024
_PIECE_BYTES: Final = 1024 * 1024
_MAX_INTERIM_ANSWERS: Final = 100


class HttpConnection:
    """Send, read the head, read the body to its end, `renew`; in this order, one caller at a time.

    What sends or reads may raise `OSError`, a bare `TimeoutError` after `seconds` of silence, and `h11.ProtocolError`;
    all that is left then is to `close`. `unanswered` says that no byte has come back for the request sent last.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEADER_BYTES)
        self._broken: h11.RemoteProtocolError | None = None
        self.unanswered = True

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None) -> HttpConnection:
        """Connect. Nothing stays open when it fails or is cancelled."""
        return cls(await open_stream(host, port, tls))

    async def send(self, head: h11.Request, body: bytes, *, seconds: float | None) -> None:
        """Send a request and wait until most of it has left, or the server does not want the rest."""
        chunks = [self._http.send(head), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage())]
        self.unanswered = True
        # One piece, so that a small request is one packet; a large one is not copied whole, neither here nor below.
        if len(body) <= _PIECE_BYTES:
            chunks = [b"".join(chunks)]
        for chunk in chunks:
            for start in range(0, len(chunk), _PIECE_BYTES):
                self._stream.write(chunk[start : start + _PIECE_BYTES])
                await self._stream.drain(seconds)

    async def read_head(self, *, seconds: float | None) -> h11.Response:
        """Wait for the status line and the headers, at most 100 KiB of them; what only announces them is skipped."""
        interim_answers = 0
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                received = await self._stream.read(seconds)
                if not received:
                    raise h11.RemoteProtocolError(self._without_answer())
                self.unanswered = False
                self._http.receive_data(received)
            elif isinstance(event, h11.Response):
                return event
            else:
                interim_answers += 1
                if interim_answers > _MAX_INTERIM_ANSWERS:
                    raise h11.RemoteProtocolError(f"over {_MAX_INTERIM_ANSWERS} answers of status 1xx")

    def _without_answer(self) -> str:
        begun, _ = self._http.trailing_data
        if begun and not begun.startswith(b"HTTP/"):
            return "illegal answer"
        return "server disconnected without an answer"

    async def read_body(self, *, seconds: float | None) -> bytes:
        """The next bytes of the body, all that are there; empty at its end."""
        pieces: list[bytes] = []
        while self._broken is None and self._http.their_state is h11.SEND_BODY:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._broken = error
                break
            if isinstance(event, h11.Data):
                pieces.append(event.data)
            elif event is h11.NEED_DATA:
                if pieces:
                    break
                self._http.receive_data(await self._stream.read(seconds))
        # What came whole is handed on before the complaint about what followed.
        if self._broken is not None and not pieces:
            raise self._broken
        return b"".join(pieces)

    def renew(self) -> bool:
        """Get ready for another request; False when there cannot be one, because either side has not finished."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        # An answer that nobody has asked for would be taken for that to the next request.
        if self._http.trailing_data != (b"", False):
            return False
        self._http.start_next_cycle()
        return self.is_quiet()

    def is_quiet(self) -> bool:
        """Whether the server, as far as can be seen from here, waits for a request."""
        return self._stream.is_quiet()

    def close(self) -> None:
        """Close at once. Safe to call more than once."""
        self._stream.close()


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

"""Lines from a client, and messages to it. Reading and writing block threads and not the event loop."""

from __future__ import annotations

import asyncio
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Final

from codex_py.text.sanitize import sanitize_line

_CHUNK: Final = 1 << 16
_MAX_CHUNKS: Final = 16
MAX_LINE: Final = 64 * 1024 * 1024
# Output that may wait for a client that does not read.
_MAX_WAITING_BYTES: Final = 64 * 1024 * 1024
_LAST_SECONDS: Final = 2.0


class LineSource:
    """Lines from a descriptor. `ended` is when the input ended, by the monotonic clock."""

    def __init__(self, descriptor: int) -> None:
        self.ended: float | None = None
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes] = asyncio.Queue()
        self._capacity = threading.Semaphore(_MAX_CHUNKS)

    async def lines(self) -> AsyncGenerator[bytes | None, None]:
        """Every line without its newline, blank ones left out, until the end; None for one over `MAX_LINE`."""
        threading.Thread(target=self._read, name="client-input", daemon=True).start()
        line = _Line()
        while chunk := await self._chunks.get():
            self._capacity.release()
            *ended, rest = chunk.split(b"\n")
            for piece in ended:
                line.add(piece)
                if (whole := line.end()) != b"":
                    yield whole
            line.add(rest)
        self.ended = time.monotonic()
        if (whole := line.end()) != b"":
            yield whole

    def _read(self) -> None:
        chunk = b" "
        while chunk:
            try:
                chunk = os.read(self._descriptor, _CHUNK)
            except BlockingIOError:
                # Another process that shares the pipe has made it non-blocking.
                select.select([self._descriptor], [], [])
                continue
            except OSError:
                chunk = b""
            self._capacity.acquire()
            try:
                self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
            except RuntimeError:
                # The loop is closed.
                return


class _Line:
    """A line being read; one that is too long is dropped."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_too_long = False

    def add(self, piece: bytes) -> None:
        self._is_too_long = self._is_too_long or len(self._held) + len(piece) > MAX_LINE
        if self._is_too_long:
            self._held.clear()
        else:
            self._held += piece

    def end(self) -> bytes | None:
        """The line, None for one that is too long; the next one begins."""
        held, was_too_long = bytes(self._held).strip(), self._is_too_long
        self._held, self._is_too_long = bytearray(), False
        return None if was_too_long else held


class Outbox:
    """Writes to a descriptor in the background. `on_lost` is called once on the loop when the client is lost."""

    def __init__(self, descriptor: int, on_lost: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._is_lost = False
        self._is_closed = False
        # When the client last read something, or had nothing to read.
        self._taken = time.monotonic()
        # Waiting for room happens on the loop, because threads of the pool are needed for other work.
        self._moved = asyncio.Event()
        self._waiters = 0
        self._writer = threading.Thread(target=self._write, name="client-output", daemon=True)
        self._writer.start()

    @property
    def waiting(self) -> int:
        """How many bytes the client has not read yet."""
        return self._size

    async def wait_for_capacity(self, max_bytes: int) -> None:
        """Wait until at most `max_bytes` are unread, or the client is gone."""
        self._waiters += 1
        try:
            while self._size > max_bytes and not (self._is_closed or self._is_lost):
                self._moved.clear()
                # What moves from here on sets it again.
                if self._size > max_bytes:
                    await self._moved.wait()
        finally:
            self._waiters -= 1

    def put(self, line: bytes) -> None:
        """Queue a line to be written. Returns at once; after the client is lost, lines are dropped."""
        with self._changed:
            if self._is_lost or self._is_closed:
                return
            if self._size > _MAX_WAITING_BYTES:
                self._lose("the client has stopped reading")
                return
            if not self._size:
                self._taken = time.monotonic()
            self._waiting.append(line)
            self._size += len(line)
            self._changed.notify_all()

    async def close(self, since: float | None = None) -> None:
        """Wait until everything is written, at most two seconds.

        `since` is when the client's input ended: the time in which it has read nothing since then is deducted.
        """
        with self._changed:
            self._is_closed = True
            self._moved.set()
            self._changed.notify_all()
        had = 0.0 if since is None else time.monotonic() - max(since, self._taken)
        await asyncio.to_thread(self._writer.join, max(0.0, _LAST_SECONDS - had))

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._is_closed or self._is_lost)
                if self._is_lost or not self._waiting:
                    return
                lines = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._write_all(memoryview(lines))
            except OSError as error:
                with self._changed:
                    self._lose(f"cannot write to the client: {(error.strerror or str(error)).lower()}")
                return
            with self._changed:
                self._size -= len(lines)
            if self._waiters:
                self._on_loop(self._moved.set)

    def _write_all(self, view: memoryview) -> None:
        while view:
            try:
                view = view[os.write(self._descriptor, view[:_CHUNK]) :]
                self._taken = time.monotonic()
            except BlockingIOError:
                select.select([], [self._descriptor], [])

    def _lose(self, reason: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._waiting.clear()
            self._on_loop(self._moved.set)
            self._on_loop(lambda: self._on_lost(reason))
            self._changed.notify_all()

    def _on_loop(self, call: Callable[[], None]) -> None:
        # The loop is closed when the client has outlasted the server's patience.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(call)


def complain(message: str) -> None:
    """Print one line on stderr, for the program that started the server."""
    try:
        print(sanitize_line(message), file=sys.stderr, flush=True)
    except OSError:
        # Nobody reads the talk.
        return

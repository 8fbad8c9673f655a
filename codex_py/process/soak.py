"""Reading a flood: what is printed faster than an event loop can be woken for it, of which only the end is kept."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Final

from codex_py.process.output import HEAD_BYTES, TAIL_BYTES
from codex_py.protocol.value import Value

# What a writer has just left in the cache of the processor is cheap to read; a large read comes too late for that.
_SIP_BYTES: Final = 64 * 1024
# More threads than that keep the event loop from its turn, which reads as fast as they do when floods are many.
_MOST_THREADS: Final = 4


class Soaked(Value):
    """What came: `head`, then `skipped` bytes that were not kept, then `kept`. `ended`: nothing follows."""

    head: bytes
    skipped: int
    kept: bytes
    ended: bool


class Soak:
    """Reads `output`, a pipe that blocks, in a thread of its own until the end of it, and closes it.

    Blocking is what makes it fast: a reader that asks first whether there is anything wakes twice as often. Nothing but
    the other end can wake it, so that a pipe which is held open in silence keeps its thread; no exit waits for that.

    `wake` is called in that thread when something has come since the last `take` or `latest`, once, and at the end.
    Raises `RuntimeError` when no thread can be started.
    """

    def __init__(self, output: FileIO, *, wake: Callable[[], None]) -> None:
        self._output = output
        self._wake = wake
        self._lock = threading.Lock()
        # Read over and over; the place of the sip that is being read is never looked at.
        self._ring = memoryview(bytearray(TAIL_BYTES + 2 * _SIP_BYTES))
        self._at = self._lap = self._total = self._taken = self._shown = 0
        self._head = bytearray()
        self._head_room = 0  # who sends for a thread has the head of what came so far
        self._awaited = True
        self._stopped = False
        self._ended = False
        threading.Thread(target=self._read, name="flood", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether the end of the output was reached; the last of it may still be there to take."""
        return self._ended

    @property
    def total(self) -> int:
        """How many bytes were read so far."""
        return self._total

    def has_more(self) -> bool:
        """Whether something can be read that was not, the end of the output included."""
        with self._lock:
            if self._output.closed:
                return False
            poll = select.poll()
            poll.register(self._output, select.POLLIN)
            return bool(poll.poll(0))

    def take(self) -> Soaked:
        """What came since the last call: the last 512 KiB of it at least and, from the second call on, the first."""
        with self._lock:
            head = bytes(self._head)
            kept = self._since(self._taken + len(head), most=TAIL_BYTES)
            skipped = self._total - self._taken - len(head) - len(kept)
            self._taken = self._shown = self._total
            self._head, self._head_room = bytearray(), HEAD_BYTES
            return Soaked(head, skipped, kept, self._ended)

    def latest(self, most: int) -> bytes:
        """The last of what came since the last call and was not taken, `most` bytes of it; it can be taken later on."""
        with self._lock:
            came = self._since(self._shown, most=most)
            self._shown = self._total
            return came

    def stop(self) -> None:
        """Read no more than what comes next, and close the pipe then."""
        self._stopped = True

    def _since(self, count: int, *, most: int) -> bytes:
        """What followed the first `count` bytes, the last `most` of it; `wake` is called for what comes now."""
        self._awaited = True
        wanted = min(self._total - count, most)
        newer = self._ring[: self._at][-wanted:] if wanted else b""
        older = self._ring[self._at + _SIP_BYTES : self._lap] if len(newer) < wanted else b""
        return bytes(older[len(older) - wanted + len(newer) :]) + bytes(newer)

    def _read(self) -> None:
        _give_way()
        while not self._stopped and (size := self._output.readinto(self._ring[self._at : self._at + _SIP_BYTES])):
            if self._note(size):
                self._wake()
            if size < _SIP_BYTES // 2:
                os.sched_yield()
        with self._lock:
            self._output.close()
            self._ended = True
        self._wake()

    def _note(self, size: int) -> bool:
        """Count what was read; say whether somebody waits for it."""
        with self._lock:
            if self._head_room:
                self._head += self._ring[self._at : self._at + min(size, self._head_room)]
                self._head_room = HEAD_BYTES - len(self._head)
            self._total += size
            self._at += size
            if len(self._ring) - self._at < _SIP_BYTES:
                self._at, self._lap = 0, self._at
            awaited, self._awaited = self._awaited, False
            return awaited


def _give_way() -> None:
    """Have this thread run when it is its turn and not at once: meanwhile a writer leaves more to be read in one go."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


class Soaks:
    """The floods of one session that are read in threads: only so many at once."""

    def __init__(self) -> None:
        self._running: list[Soak] = []

    def start(self, output: FileIO, *, wake: Callable[[], None]) -> Soak | None:
        """Read `output` in a thread, if one can be had; if not, it still does not block."""
        self._running = [soak for soak in self._running if not soak.ended]
        if len(self._running) >= _MOST_THREADS:
            return None
        os.set_blocking(output.fileno(), True)
        try:
            soak = Soak(output, wake=wake)
        except RuntimeError:
            os.set_blocking(output.fileno(), False)
            return None
        self._running.append(soak)
        return soak

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
# Room for the end that is kept, for a sip on its way, and for those that come while somebody copies the end.
_RING_BYTES: Final = TAIL_BYTES + 4 * _SIP_BYTES
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
        # Held to close the pipe and to change the head; a lock at each sip would cost as much as the sip.
        self._lock = threading.Lock()
        # The byte at `n` in all of the output is at `n % _RING_BYTES` here, until another lap is read over it.
        self._ring = memoryview(bytearray(_RING_BYTES))
        self._total = self._taken = self._shown = 0
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
        self._awaited = True
        with self._lock:
            ended = self._ended
            head, self._head = bytes(self._head), bytearray()
            self._head_room = HEAD_BYTES  # from now on the thread waits for the lock before its next sip but one
            first = self._taken + len(head)
            kept, self._taken = self._copy(first, most=TAIL_BYTES)
            self._shown = self._taken
            return Soaked(head, self._taken - first - len(kept), kept, ended)

    def latest(self, most: int) -> bytes:
        """The last of what came since the last call and was not taken, `most` bytes of it; it can be taken later on."""
        self._awaited = True
        came, self._shown = self._copy(self._shown, most=most)
        return came

    def stop(self) -> None:
        """Read no more than what comes next, and close the pipe then."""
        self._stopped = True

    def _copy(self, first: int, *, most: int) -> tuple[bytes, int]:
        """What came from byte `first` on, the last `most` of it, and how much there was in all by then."""
        while True:
            total = self._total
            size = min(total - first, most)
            start = (total - size) % _RING_BYTES
            copied = bytes(self._ring[start : start + size])
            copied += bytes(self._ring[: size - len(copied)])
            # The sip that is being read now may lie over the oldest bytes, if the thread was quick.
            if self._total + _SIP_BYTES <= total - size + _RING_BYTES:
                return copied, total

    def _read(self) -> None:
        _give_way()
        readinto, ring = self._output.readinto, self._ring
        total = at = 0
        while size := readinto(ring[at : at + _SIP_BYTES]):
            total += size
            at = total % _RING_BYTES
            self._total = total
            if self._head_room:
                self._keep_head()
            if self._awaited:
                self._awaited = False
                self._wake()
            if self._stopped:
                break
        with self._lock:
            self._output.close()
            self._ended = True
        self._wake()

    def _keep_head(self) -> None:
        with self._lock:
            came, _ = self._copy(self._taken + len(self._head), most=_RING_BYTES - _SIP_BYTES)
            self._head += came[: self._head_room]
            self._head_room = HEAD_BYTES - len(self._head)


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

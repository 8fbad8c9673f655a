"""Reading a flood: what is printed faster than an event loop can be woken for it, of which only the end is kept."""

from __future__ import annotations

import select
import time
from io import FileIO
from typing import Final

from codex_py.protocol.value import Value

# Shorter than a command that has ended is waited for, so that nothing it printed comes too late.
_SECONDS: Final = 0.02
_SILENCE_MS: Final = 5
# What a writer has just left in the cache of the processor is cheap to read; a large read comes too late for that.
SIP_BYTES: Final = 64 * 1024


class Soaked(Value):
    """What came: `skipped` bytes that were not kept, then `pieces`, views of the scratch. `ended`: nothing follows."""

    skipped: int
    pieces: tuple[memoryview, ...]
    ended: bool


def soak(output: FileIO, scratch: bytearray) -> Soaked:
    """Read into `scratch`, over and over, until nothing has come for 5 ms, for 20 ms at most. For a thread.

    `output` does not block. All but the last 64 KiB of `scratch` is kept at least, if that much came.
    """
    ready = select.poll()
    ready.register(output, select.POLLIN)
    view = memoryview(scratch)
    at = lap = total = 0
    ended = False
    until = time.monotonic() + _SECONDS
    while not ended and ready.poll(_SILENCE_MS) and time.monotonic() < until:
        if len(view) - at < SIP_BYTES:
            lap, at = at, 0
        try:
            size = output.readinto(view[at : at + SIP_BYTES])
        except OSError:
            size = 0
        ended = size == 0
        at += size or 0
        total += size or 0
    # Behind the place reached is what is left of the lap before.
    pieces = tuple(piece for piece in (view[at:lap], view[:at]) if piece)
    return Soaked(total - sum(map(len, pieces)), pieces, ended)

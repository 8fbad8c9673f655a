"""A pause that many processes share: when one of them meets a rate limit, all wait before their next request.

The state is one small file, which `codex-py batch` makes and names in the environment of its workers.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import time
from pathlib import Path
from typing import Final

from codex_py.model.retry import number_between
from codex_py.protocol.value import Value

PACE_VARIABLE: Final = "CODEX_PY_PACE_FILE"
# When requests may go on, in seconds since the epoch, and how many rate limits there were.
_FORMAT: Final = struct.Struct("<dQ")
# A server's mistake, or a file of somebody else's, must not stop everything for days.
_MAX_PAUSE: Final = 600.0
_SPREAD: Final = 0.25


class PaceState(Value):
    """`not_before` is in seconds since the epoch."""

    not_before: float = 0.0
    limits: int = 0


class Pace:
    """The shared state in a file. Where it cannot be read or written, requests are sent at once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def create(self) -> None:
        """Make the file, without a pause. Raises `OSError`."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(descriptor, _FORMAT.pack(0.0, 0), 0)
        finally:
            os.close(descriptor)

    def read(self) -> PaceState:
        """The state now."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return PaceState()
        try:
            return _state(descriptor)
        except OSError:
            return PaceState()
        finally:
            os.close(descriptor)

    async def wait(self) -> None:
        """Return when a request may be sent: not all at the same moment, which would be the next rate limit."""
        while (pause := self.read().not_before - time.time()) > 0:
            await asyncio.sleep(min(pause, _MAX_PAUSE) + number_between(0.0, _SPREAD))
            if pause > _MAX_PAUSE:
                return

    def note_limit(self, until: float) -> None:
        """A server has asked to wait until then; a longer pause stays."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            state = _state(descriptor)
            os.pwrite(descriptor, _FORMAT.pack(max(state.not_before, until), state.limits + 1), 0)
        except OSError:
            return
        finally:
            os.close(descriptor)


def _state(descriptor: int) -> PaceState:
    raw = os.pread(descriptor, _FORMAT.size, 0)
    return PaceState(*_FORMAT.unpack(raw)) if len(raw) == _FORMAT.size else PaceState()

"""How often and after how long a model request is sent again. The clock comes from the caller, and so does chance.

And a pause that many processes share: when one of them meets a rate limit, all wait before their next request. Its
state is one small file, which `codex-py batch` makes and names in the environment of its workers.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import time
from pathlib import Path
from typing import Final

from codex_py.errors import ModelError
from codex_py.protocol.value import Value

MAX_RETRIES: Final = 100
_FIRST_DELAY: Final = 0.2
_MAX_DELAY: Final = 60.0
_QUICK_CONNECTS: Final = 5
_CONNECT_DELAY: Final = 5.0
# A sleep may end a moment early.
_CLOCK_SLACK: Final = 0.001


def number_between(low: float, high: float) -> float:
    """Any number between these, so that many programs do not wait equally long. Importing `random` takes 1.4 ms."""
    return low + (high - low) * int.from_bytes(os.urandom(4)) / 2**32


class Retry(Value):
    """Send again after `delay` seconds. `limit` is None where a time budget bounds the attempts."""

    delay: float
    attempt: int
    limit: int | None


class RetryBudget:
    """The limits on retries of one sampling request.

    Failures before an answer began and failures within it have a limit each, and their sum the larger of the two.
    For a server that cannot be reached the limit is a time: `connect_seconds`, None for no limit, counted
    from the first such failure since the server last answered.
    """

    def __init__(self, *, request_retries: int, stream_retries: int, connect_seconds: float | None) -> None:
        self._request_limit = _clamped(request_retries)
        self._stream_limit = _clamped(stream_retries)
        self._connect_seconds = connect_seconds
        self._request_retries = 0
        self._stream_retries = 0
        self._connects = 0
        self._unreachable_since: float | None = None

    def next_delay(self, error: ModelError, *, now: float, jitter: float = 1.0) -> Retry | None:
        """Count a failure; None when it is final.

        `now` is monotonic seconds; `jitter` multiplies the back-off (draw it from 0.9 to 1.1), never a server's own
        delay.
        """
        if not error.retryable:
            return None
        if error.unreachable:
            return self._next_connect(now, jitter)
        self._unreachable_since, self._connects = None, 0
        used = self._request_retries + self._stream_retries
        mine, limit = (
            (self._stream_retries, self._stream_limit)
            if error.streaming
            else (self._request_retries, self._request_limit)
        )
        total = max(self._request_limit, self._stream_limit)
        if mine >= limit or used >= total:
            return None
        if error.streaming:
            self._stream_retries += 1
        else:
            self._request_retries += 1
        delay = error.retry_after if error.retry_after is not None else _back_off(used + 1, jitter)
        return Retry(delay, used + 1, min(total, used - mine + limit))

    def _next_connect(self, now: float, jitter: float) -> Retry | None:
        if self._unreachable_since is None:
            self._unreachable_since = now
        self._connects += 1
        delay = _back_off(self._connects, jitter) if self._connects <= _QUICK_CONNECTS else _CONNECT_DELAY
        if self._connect_seconds is not None:
            left = self._unreachable_since + self._connect_seconds - now
            if left < _CLOCK_SLACK:
                return None
            # The last attempt is made at the very end of the budget.
            delay = min(delay, left)
        return Retry(delay, self._connects, None)


def _clamped(retries: int) -> int:
    return max(0, min(retries, MAX_RETRIES))


def _back_off(attempt: int, jitter: float) -> float:
    return min(_FIRST_DELAY * 2 ** (min(attempt, 32) - 1), _MAX_DELAY) * jitter


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

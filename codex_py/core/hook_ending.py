"""The end of a session: runs its SessionEnd hooks and waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final

from codex_py.core.hook_runner import HookRunner

# A session that ends waits so long for its hooks, whatever their own time is.
ENDING_SECONDS: Final = 10.0


class HookEnding:
    """Waits for the last hooks of a session. `reason` is why it ends, as far as nobody says otherwise."""

    def __init__(self, runner: HookRunner, reason: str) -> None:
        self._runner = runner
        self._reason = reason
        self._limit: asyncio.Timeout | None = None
        self._is_cut_short = False

    def because(self, reason: str) -> None:
        """Say why the session is about to end: `clear` for a new one, `resume` for another one."""
        self._reason = reason

    def cut_short(self) -> None:
        """Let a session that ends wait no longer; nothing where it does not end."""
        if self._limit is not None and not self._limit.expired():
            self._is_cut_short = True
            self._limit.reschedule(0.0)

    async def wait(self, *, run_hooks: bool) -> None:
        """Wait for background work, and before it, with `run_hooks`, for the SessionEnd hooks."""
        if run_hooks and not await self._in_time(self._runner.fire("SessionEnd", {"reason": self._reason}, turn=False)):
            timed_out = f"did not end within {ENDING_SECONDS:g} s and were killed"
            self._runner.services.warn(f"SessionEnd hooks {'were stopped' if self._is_cut_short else timed_out}")
        in_time = not self._is_cut_short and await self._in_time(self._runner.finish())
        if not in_time and await self._runner.stop():
            self._runner.services.warn("hooks that nobody waited for had not ended with the session and were stopped")

    async def _in_time(self, work: Awaitable[object]) -> bool:
        """Whether something ends before the time for it is up."""
        try:
            async with asyncio.timeout(ENDING_SECONDS) as self._limit:
                await work
        except TimeoutError:
            return False
        finally:
            self._limit = None
        return True

"""The requests of one client that are under way: each a task of its own, none of which takes the server with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final

from codex_py.server.pipes import LineSource, LineTooLong

# More are not read before some of these are over.
_MOST_AT_ONCE: Final = 4096
# A client that has said its last may still listen.
_LAST_SECONDS: Final = 2.0


class Requests:
    """`report_crash` keeps what must not happen and gives a line about it."""

    def __init__(self, report_crash: Callable[[BaseException], str]) -> None:
        self._report_crash = report_crash
        self._running: set[asyncio.Task[None]] = set()
        self._short: set[asyncio.Task[None]] = set()

    async def read(self, source: LineSource, take: Callable[[bytes | LineTooLong], None]) -> None:
        """Take what the client says, until its end; the requests that are short are then waited for a little."""
        async with aclosing(source.lines()) as lines:
            async for line in lines:
                take(line)
                while len(self._running) >= _MOST_AT_ONCE:
                    await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        if self._short:
            await asyncio.wait(self._short, timeout=_LAST_SECONDS)

    def begin(
        self, work: Coroutine[Any, Any, None], failed: Callable[[str], None], *, is_long: bool = False
    ) -> asyncio.Task[None]:
        """Carry a request out; `failed` hears of a bug. One that `is_long` is not waited for at the end."""
        task = asyncio.create_task(work)
        self._running.add(task)
        if not is_long:
            self._short.add(task)
        task.add_done_callback(lambda done: self._note_end(done, failed))
        return task

    async def settle(self) -> None:
        """Wait a little for all of them, then stop those that are left."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_SECONDS)
        await self.stop()

    async def stop(self) -> None:
        """Stop all of them."""
        for task in tuple(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _note_end(self, task: asyncio.Task[None], failed: Callable[[str], None]) -> None:
        self._running.discard(task)
        self._short.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            failed(self._report_crash(error))

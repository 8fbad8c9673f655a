"""The live sessions of one process, by thread id. Speaks no protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.server.host import Opening, ServerHostProtocol
from codex_py.server.live_thread import Hear, LiveThread


class _OpenedSession(NamedTuple):
    """What a keeper's session is, once it is open, and what makes the keeper close it."""

    ready: asyncio.Future[Session]
    leave: asyncio.Event


class Threads:
    """Opens and closes sessions. Each has a task of its own, which opens it, keeps it, and closes it.

    `report_crash` writes down what must not happen and gives back a line about it.
    """

    def __init__(self, host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> None:
        self._host = host
        self._report_crash = report_crash
        self._live: dict[str, LiveThread] = {}
        self._keepers: dict[asyncio.Task[None], _OpenedSession] = {}
        self._is_closing = False

    def __iter__(self) -> Iterator[LiveThread]:
        """The live threads, in the order they were opened."""
        return iter(tuple(self._live.values()))

    def get(self, thread_id: str) -> LiveThread | None:
        """The live thread with this id."""
        return self._live.get(thread_id)

    async def open(self, opening: Opening, hear: Hear) -> LiveThread:
        """Open a session; `hear` is called with every event of it, on the loop's thread.

        No event is sent before `LiveThread.begin`. Raises `UserError` for settings that cannot be, and for a session
        that is not there or that another process writes to.
        """
        # Files are read for this, on slow disks too: the other threads go on meanwhile.
        loaded = await asyncio.to_thread(self._host.load, opening.cwd, opening.settings)
        if self._is_closing:
            raise _ending()
        opened = _OpenedSession(asyncio.get_running_loop().create_future(), asyncio.Event())
        keeper = asyncio.create_task(self._keep(opening, loaded, opened))
        self._keepers[keeper] = opened
        keeper.add_done_callback(lambda done: self._note_end(done, opened.ready))
        try:
            session = await asyncio.shield(opened.ready)
        except asyncio.CancelledError:
            _stop(keeper, opened)
            raise
        thread = LiveThread(session, opening, loaded, env=self._host.env, hear=hear, report_crash=self._report_crash)
        thread.attach(keeper, opened.leave)
        self._live[session.thread_id] = thread
        keeper.add_done_callback(lambda _: self._forget(thread))
        return thread

    async def close(self, thread_id: str) -> None:
        """Stop what a thread does, and end its session in order. One that is not live is closed already."""
        if (thread := self._live.get(thread_id)) is not None:
            await thread.close()

    async def close_all(self) -> None:
        """The same for every thread, all at once. What is only about to be opened never is."""
        self._is_closing = True
        for keeper, opened in self._keepers.items():
            if not opened.ready.done():
                _stop(keeper, opened)
        await asyncio.gather(*(thread.close() for thread in self))
        for opened in self._keepers.values():
            opened.leave.set()
        while self._keepers:
            await asyncio.wait(self._keepers)

    async def _keep(self, opening: Opening, loaded: LoadedConfig, opened: _OpenedSession) -> None:
        async with self._host.open(opening, loaded) as session:
            opened.ready.set_result(session)
            await opened.leave.wait()

    def _note_end(self, keeper: asyncio.Task[None], ready: asyncio.Future[Session]) -> None:
        del self._keepers[keeper]
        error = None if keeper.cancelled() else keeper.exception()
        if not ready.done():
            ready.set_exception(error or _ending())
            # Nobody may wait for it any more.
            ready.exception()
        elif error is not None:
            self._report_crash(error)

    def _forget(self, thread: LiveThread) -> None:
        if self._live.get(thread.id) is thread:
            del self._live[thread.id]


def _stop(keeper: asyncio.Task[None], opened: _OpenedSession) -> None:
    """Have a session closed, or not opened at all: what it waits for at its beginning, nobody waits for any more."""
    opened.leave.set()
    if not opened.ready.done():
        keeper.cancel()


def _ending() -> UserError:
    return UserError("the session is not opened: the server is ending")

"""What follows a turn where the user wants it: the program of `notify` runs, and the model names the session."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from codex_py.core.session import Session
from codex_py.core.session_request import SessionRequest
from codex_py.errors import UserError
from codex_py.hooks.notify import Notifier
from codex_py.protocol import events
from codex_py.rollout.listing import read_names, save_name

# A program that ends waits so long for a title that is on its way.
_SECONDS: Final = 10.0


class AfterTurn:
    """Subscribes to a session what its configuration asks for."""

    def __init__(self, request: SessionRequest, session: Session) -> None:
        self._titles: SessionTitles | None = None
        if request.loaded.config.notify:
            session.subscribe(Notifier(request, session))
        # A session that is resumed has its first turn behind it.
        is_new = session.rollout is not None and not session.history.items
        if request.loaded.config.sessions.titles == "model" and is_new:
            self._titles = SessionTitles(request, session)
            session.subscribe(self._titles)

    async def close(self) -> None:
        """Wait for a title that is on its way, but not for long."""
        if self._titles is not None:
            await self._titles.close()


class SessionTitles:
    """A listener that has a session named after its first turn, unless it has a name by then."""

    def __init__(self, request: SessionRequest, session: Session) -> None:
        self._home = request.state_home
        self._session = session
        self._prompt = ""
        self._task: asyncio.Task[None] | None = None

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted(_, messages):
                self._prompt = self._prompt or "\n\n".join(messages)
            case events.TurnCompleted(_, last_message) if self._task is None and self._prompt.strip():
                self._task = asyncio.create_task(self._make(last_message or ""))
            case _:
                pass

    async def close(self) -> None:
        """Wait for the title, but not for long."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=_SECONDS)
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _make(self, answer: str) -> None:
        thread_id = self._session.thread_id
        try:
            if thread_id not in await asyncio.to_thread(read_names, self._home):
                title = await self._session.side.title(self._prompt, answer)
                await asyncio.to_thread(save_name, self._home, thread_id, title)
        except UserError as error:
            self._session.warn(f"this session has no title from the model: {error}")

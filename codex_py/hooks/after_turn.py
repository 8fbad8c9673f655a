"""What follows a turn where the user wants it: the program of `notify` runs, and the model names the session."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from contextlib import suppress
from typing import Any, Final

from codex_py.core.session import Session
from codex_py.core.session_request import SessionRequest
from codex_py.errors import UserError
from codex_py.programs import program_finder
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import extra_roots
from codex_py.rollout.listing import read_names, save_name
from codex_py.text.files import os_reason
from codex_py.text.shorten import shortened

# The kernel takes no argument of 128 KiB.
_MAX_BYTES: Final = 120 * 1024
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


class Notifier:
    """A listener that starts the program with the turn as one JSON argument, and does not wait for it.

    The argument has the keys that Codex CLI's has; long texts in it are cut in the middle.
    """

    def __init__(self, request: SessionRequest, session: Session) -> None:
        self._request = request
        self._session = session
        self._messages: tuple[str, ...] = ()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted(_, messages):
                self._messages = messages
            case events.TurnCompleted(turn_id, last_message):
                self._start(self._argument(turn_id, last_message))
            case _:
                pass

    def _start(self, argument: str) -> None:
        name, *arguments = self._request.loaded.config.notify
        cwd, env = self._request.cwd, self._request.env
        try:
            programs = program_finder(env, cwd, extra_roots(self._session.settings.sandbox_policy))
            # In a session of its own, so that it survives the end of this program and of its terminal.
            started = subprocess.Popen(
                [programs.find_chosen(name, "`notify`"), *arguments, argument],
                cwd=cwd,
                # Without it, Python would load modules from the project, where commands may write.
                env={**env, "PATH": programs.trusted_path(), "PYTHONSAFEPATH": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except UserError as error:
            self._session.warn(str(error))
            return
        except (OSError, ValueError) as error:
            reason = os_reason(error) if isinstance(error, OSError) else str(error)
            self._session.warn(f"cannot start `{name}`, the program of `notify`: {reason}")
            return
        # Without a wait it would stay in the process table when it has ended.
        threading.Thread(target=started.wait, daemon=True).start()

    def _argument(self, turn_id: str, answer: str | None) -> str:
        turn: dict[str, Any] = {
            "type": "agent-turn-complete",
            "thread-id": self._session.thread_id,
            "turn-id": turn_id,
            "cwd": str(self._request.cwd),
            "client": self._request.originator,
            "input-messages": list(self._messages),
            "last-assistant-message": answer,
        }
        encoded = encode_json(turn)
        return (
            encoded if len(encoded) <= _MAX_BYTES else encode_json(shortened(turn, _MAX_BYTES, encode_json))
        ).decode()

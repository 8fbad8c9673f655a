"""`/new`, `/resume`, `/fork`, `/quit`: leaving the session for another one, or for good."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.stored_sessions import load_stored
from codex_py.errors import UserError
from codex_py.ui.repl.desk import Desk, Destination, OpenSession, Quit
from codex_py.ui.repl.panels.sessions import Lookout, choose_session
from codex_py.ui.repl.slash import Command


async def _new(desk: Desk, words: str) -> None:
    _leave(desk, OpenSession(), "clear")


async def _resume(desk: Desk, words: str) -> None:
    await _go_on(desk, "resume", words)


async def _fork(desk: Desk, words: str) -> None:
    """A number is a turn of this session; anything else is another session."""
    if words.isdecimal() and len(words) < 8:
        if not len(desk.session.history):
            raise UserError("there is no turn of this session yet", hint="`/fork` alone lists other sessions")
        await _leave_for(desk, ResumeTarget(desk.session.thread_id, any_directory=True, fork=True, turn=int(words)))
        return
    await _go_on(desk, "fork", words)


async def _go_on(desk: Desk, verb: Literal["resume", "fork"], words: str) -> None:
    lookout = Lookout(desk.place.home, desk.cwd, desk.user_home, time.time(), desk.session.thread_id)
    chosen = words or await choose_session(desk.asker, verb, lookout)
    if chosen == desk.session.thread_id and verb == "resume":
        raise UserError("this is the session that is open")
    if chosen:
        await _leave_for(desk, ResumeTarget(chosen, any_directory=True, fork=verb == "fork"))


async def _leave_for(desk: Desk, target: ResumeTarget) -> None:
    """Raise `UserError`, and stay, for a session that cannot be gone on with."""
    await asyncio.to_thread(load_stored, desk.place.home, wanted=target.thread_id, cwd=None, through_turn=target.turn)
    _leave(desk, OpenSession(target), "resume")


def _leave(desk: Desk, destination: Destination, reason: str) -> None:
    if desk.session.hooks is not None:
        desk.session.hooks.ending.because(reason)
    desk.front.leave(destination)


async def _quit(desk: Desk, words: str) -> None:
    desk.front.leave(Quit())


LEAVE: Final = (
    Command("new", "begin a new session", _new, while_running=False, also="clear"),
    Command("resume", "go on with an earlier session", _resume, "[SESSION]", while_running=False),
    Command(
        "fork",
        "go on with a copy of a session, or of this one up to a turn",
        _fork,
        "[SESSION|TURN]",
        while_running=False,
    ),
    Command("quit", "leave", _quit, also="exit"),
)

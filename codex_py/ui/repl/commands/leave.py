"""`/new`, `/resume`, `/fork`, `/quit`: leaving the session for another one, or for good."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.stored_sessions import load_stored
from codex_py.errors import UserError
from codex_py.ui.repl.command_context import CommandContext, Destination, OpenSession, Quit
from codex_py.ui.repl.panels.sessions import SessionWatcher, choose_session
from codex_py.ui.repl.slash import SlashCommand


async def _new(context: CommandContext, words: str) -> None:
    _leave(context, OpenSession(), "clear")


async def _resume(context: CommandContext, words: str) -> None:
    await _go_on(context, "resume", words)


async def _fork(context: CommandContext, words: str) -> None:
    """A number is a turn of this session; anything else is another session."""
    if words.isdecimal() and len(words) < 8:
        if not len(context.session.history):
            raise UserError("there is no turn of this session yet", hint="`/fork` alone lists other sessions")
        await _leave_for(
            context, ResumeTarget(context.session.thread_id, any_directory=True, fork=True, turn=int(words))
        )
        return
    await _go_on(context, "fork", words)


async def _go_on(context: CommandContext, verb: Literal["resume", "fork"], words: str) -> None:
    watcher = SessionWatcher(
        context.launch.home, context.cwd, context.user_home, time.time(), context.session.thread_id
    )
    chosen = words or await choose_session(context.asker, verb, watcher)
    if chosen == context.session.thread_id and verb == "resume":
        raise UserError("this is the session that is open")
    if chosen:
        await _leave_for(context, ResumeTarget(chosen, any_directory=True, fork=verb == "fork"))


async def _leave_for(context: CommandContext, target: ResumeTarget) -> None:
    """Raise `UserError`, and stay, for a session that cannot be gone on with."""
    await asyncio.to_thread(load_stored, context.launch.home, name=target.thread_id, cwd=None, through_turn=target.turn)
    _leave(context, OpenSession(target), "resume")


def _leave(context: CommandContext, destination: Destination, reason: str) -> None:
    if context.session.hooks is not None:
        context.session.hooks.ending.because(reason)
    context.front.leave(destination)


async def _quit(context: CommandContext, words: str) -> None:
    context.front.leave(Quit())


LEAVE: Final = (
    SlashCommand("new", "begin a new session", _new, while_running=False, also="clear"),
    SlashCommand("resume", "go on with an earlier session", _resume, "[SESSION]", while_running=False),
    SlashCommand(
        "fork",
        "go on with a copy of a session, or of this one up to a turn",
        _fork,
        "[SESSION|TURN]",
        while_running=False,
    ),
    SlashCommand("quit", "leave", _quit, also="exit"),
)

"""Which session a run begins with."""

from __future__ import annotations

import time
from typing import Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.session import Session
from codex_py.ui.repl.command_context import Destination, OpenSession, Quit
from codex_py.ui.repl.panels.forms import FormAsker
from codex_py.ui.repl.panels.sessions import SessionWatcher, choose_session
from codex_py.ui.repl.start import LaunchContext, LaunchOptions


async def first_destination(asker: FormAsker, launch: LaunchContext, options: LaunchOptions) -> Destination:
    """A new session, the one that is named, the last one, or one the user chooses."""
    if options.verb is None:
        return OpenSession()
    session = options.session
    if session is None and not options.last:
        verb: Literal["resume", "fork"] = "fork" if options.verb == "fork" else "resume"
        home = launch.env.get("HOME", "")
        session = await choose_session(asker, verb, SessionWatcher(launch.home, launch.cwd, home, time.time()))
        if session is None:
            return Quit()
    anywhere = options.anywhere or not options.last
    return OpenSession(ResumeTarget(session, anywhere, fork=options.verb == "fork", turn=options.turn))


def way_back(session: Session, *, is_ephemeral: bool) -> OpenSession:
    """Where to go on when the next session cannot be opened: a session without messages is not stored."""
    if is_ephemeral or not len(session.history):
        return OpenSession()
    return OpenSession(ResumeTarget(session.thread_id, any_directory=True))

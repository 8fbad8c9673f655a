"""Which session a run begins with."""

from __future__ import annotations

import time
from typing import Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.session import Session
from codex_py.ui.repl.desk import Destination, OpenSession, Quit
from codex_py.ui.repl.panels.forms import Asker
from codex_py.ui.repl.panels.sessions import Lookout, choose_session
from codex_py.ui.repl.start import Errand, Place


async def first_destination(asker: Asker, place: Place, errand: Errand) -> Destination:
    """A new session, the one that is named, the last one, or one the user chooses."""
    if errand.verb is None:
        return OpenSession()
    named = errand.session
    if named is None and not errand.last:
        verb: Literal["resume", "fork"] = "fork" if errand.verb == "fork" else "resume"
        home = place.env.get("HOME", "")
        named = await choose_session(asker, verb, Lookout(place.home, place.cwd, home, time.time()))
        if named is None:
            return Quit()
    anywhere = errand.anywhere or not errand.last
    return OpenSession(ResumeTarget(named, anywhere, fork=errand.verb == "fork", turn=errand.turn))


def way_back(session: Session, *, is_ephemeral: bool) -> OpenSession:
    """Where to go on when the one it was left for cannot be opened: nothing is kept of a session without messages."""
    if is_ephemeral or not len(session.history):
        return OpenSession()
    return OpenSession(ResumeTarget(session.thread_id, any_directory=True))

"""The first lines of a session, from what it tells when it begins."""

from __future__ import annotations

from pathlib import Path

from codex_py import __version__
from codex_py.protocol.events import SessionStarted
from codex_py.render.banner import Banner
from codex_py.ui.repl.desk import Desk


def banner_of(started: SessionStarted, desk: Desk) -> Banner:
    """The banner of a session that has begun."""
    notice = (started.notice,) if started.notice else ()
    return Banner(
        version=__version__,
        model=started.model,
        provider=started.provider,
        cwd=started.cwd,
        sandbox=started.sandbox,
        approval=started.approval,
        effort=started.effort,
        skills=len(desk.catalog().enabled()),
        resumed=started.resumed,
        warnings=notice,
        home=Path(desk.user_home) if desk.user_home else None,
    )

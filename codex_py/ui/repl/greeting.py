"""The first lines of a session, from its first event."""

from __future__ import annotations

from pathlib import Path

from codex_py import __version__
from codex_py.protocol.events import SessionStarted
from codex_py.render.banner import Banner
from codex_py.ui.repl.command_context import CommandContext


def banner_of(started: SessionStarted, context: CommandContext) -> Banner:
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
        skills=len(context.catalog().enabled()),
        resumed=started.resumed,
        warnings=notice,
        home=Path(context.user_home) if context.user_home else None,
    )

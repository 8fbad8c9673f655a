"""Choosing a stored session to go on with, or to fork."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.core.offered_sessions import SessionSummary, offered_sessions
from codex_py.text.age import describe_age
from codex_py.ui.repl.panels.forms import Asker, Entry, Line, Listing
from codex_py.ui.repl.panels.wording import short_path

_TITLES: Final = {"resume": "Resume a session", "fork": "Fork a session"}
_SHOWN_PROMPT: Final = 2000


async def choose_session(
    asker: Asker, verb: Literal["resume", "fork"], *, home: Path, cwd: Path, user_home: str, now: float
) -> str | None:
    """The id of a session, the one written to last first: of this folder, and with Tab of any. `now` is in seconds."""
    found = await asyncio.to_thread(offered_sessions, home, cwd=None)
    own = await asyncio.to_thread(offered_sessions, home, cwd=cwd)
    return await asker.pick(session_listing(verb, own, found, user_home=user_home, now=now))


def session_listing(
    verb: Literal["resume", "fork"],
    own: Sequence[SessionSummary],
    everywhere: Sequence[SessionSummary],
    *,
    user_home: str,
    now: float,
) -> Listing[str]:
    """Two lists, each the other one's other."""

    def listing(sessions: Sequence[SessionSummary], where: str, other: str, *, folders: bool) -> Listing[str]:
        return Listing(
            title=f"{_TITLES[verb]} of {where}",
            entries=tuple(_entry(one, user_home, now, with_folder=folders) for one in sessions),
            empty=f"no session of {where}",
            enter=verb,
            other=at_all if where == "this folder" else here,
            other_name=other,
        )

    def here() -> Listing[str]:
        return listing(own, "this folder", "all folders", folders=False)

    def at_all() -> Listing[str]:
        return listing(everywhere, "any folder", "only this folder", folders=True)

    return here()


def _entry(session: SessionSummary, user_home: str, now: float, *, with_folder: bool) -> Entry[str]:
    prompt = " ".join(session.first_prompt[:_SHOWN_PROMPT].split())
    age = describe_age(session.updated, now=now)
    folder = short_path(Path(session.cwd), user_home) if session.cwd else ""
    notes = [age, folder if with_folder else "", session.branch]
    about = [f"{session.tokens:,} tokens" if session.tokens else "", session.model, folder, session.branch]
    details = (
        Line(prompt or "(no prompt)"),
        Line(" · ".join(filter(None, about)), "menu.note"),
        Line(session.id, "menu.note"),
    )
    return Entry(
        session.id,
        session.name or prompt or session.id,
        " · ".join(filter(None, notes)),
        details,
        words=f"{session.cwd} {session.branch} {session.id} {prompt}",
    )

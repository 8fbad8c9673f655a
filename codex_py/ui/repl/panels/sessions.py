"""Choosing a stored session to go on with, or to fork; there it can be renamed, archived and deleted too."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app

from codex_py.errors import UserError
from codex_py.paths import short_path
from codex_py.rollout.archive import archive_session, delete_session
from codex_py.rollout.listing import SessionQuery, describe_damaged, list_sessions, name_complaint, save_name
from codex_py.rollout.summary import SessionSummary
from codex_py.services.session_search import SearchRequest, search_sessions
from codex_py.text.display import describe_age
from codex_py.ui.repl.panels.forms import Form, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.panels.picker import PickerAction, PickerPanel

_TITLES: Final = {"resume": "Resume a session", "fork": "Fork a session"}
_SHOWN_PROMPT: Final = 2000
_MAX_HITS: Final = 500

Change: TypeAlias = Literal["rename", "archive", "delete"]
_KEYS: Final[tuple[tuple[str, Change], ...]] = (("c-r", "rename"), ("c-a", "archive"), ("c-d", "delete"))


class SessionsPanel(PickerPanel[str]):
    """The list. `change` says what is to be done with the session it is settled with, None for going on with it.

    The search finds what lists show of a session, and a moment later what was said and done in it: `find` gives the
    ids of the sessions in which all words stand.
    """

    def __init__(self, listing: ListForm[str], find: Callable[[str], Collection[str]]) -> None:
        self.change: Change | None = None
        self._find = find
        self._ids: Collection[str] = ()
        self._finding: asyncio.Task[None] | None = None
        actions = [
            PickerAction(key, lambda change=change: change, partial(self._settle_for, change)) for key, change in _KEYS
        ]
        super().__init__(listing, actions=actions)

    def again(self, listing: ListForm[str], notice: str) -> SessionsPanel:
        """A new panel on the same one of the two lists, with the same search and selection."""
        is_other = listing.other is not None and listing.title != self.listing.title
        panel = SessionsPanel(listing.other() if is_other and listing.other else listing, self._find)
        panel.resume(self)
        panel.notify(notice)
        return panel

    def settle(self, value: str | None) -> None:
        if self._finding is not None:
            self._finding.cancel()
        super().settle(value)

    def _narrow(self) -> None:
        self._ids = ()
        super()._narrow()
        if self._finding is not None:
            self._finding.cancel()
        if self._search.text.strip():
            self._finding = asyncio.get_running_loop().create_task(self._find_texts(self._search.text))

    def _found(self) -> tuple[ListEntry[str], ...]:
        found = super()._found()
        shown = {entry.value for entry in found}
        return (*found, *(e for e in self._listing.entries if e.value in self._ids and e.value not in shown))

    async def _find_texts(self, words: str) -> None:
        with suppress(UserError):
            self._ids = await asyncio.to_thread(self._find, words)
        super()._narrow()
        get_app().invalidate()

    def _settle_for(self, change: Change) -> None:
        if self.selected is not None:
            self.change = change
            self.settle(self.selected.value)


class SessionWatcher(NamedTuple):
    """Where sessions are listed from: CODEX_HOME, the directory, the user's home shown as `~`, the time in seconds, and
    the id of the session that is open."""

    home: Path
    cwd: Path
    user_home: str
    now: float
    opened: str = ""


async def choose_session(asker: FormAsker, verb: Literal["resume", "fork"], watcher: SessionWatcher) -> str | None:
    """The id of a session, the one written to last first: of this directory, and with Tab of any."""

    async def listing() -> tuple[ListForm[str], Sequence[SessionSummary]]:
        found = await asyncio.to_thread(list_sessions, watcher.home, SessionQuery())
        own = await asyncio.to_thread(list_sessions, watcher.home, SessionQuery(watcher.cwd))
        damaged = await asyncio.to_thread(describe_damaged, watcher.home, None)
        listed = session_listing(verb, own, found, user_home=watcher.user_home, now=watcher.now, damaged=damaged)
        return listed, found

    listed, sessions = await listing()
    if asker.show is None:
        return await asker.pick(listed)
    panel = SessionsPanel(listed, partial(_ids_with, watcher.home))
    while True:
        chosen = await asker.show(panel)
        if chosen is None or panel.change is None:
            return chosen
        session = next(session for session in sessions if session.id == chosen)
        if chosen == watcher.opened and panel.change != "rename":
            notice = f"this is the session that is open: leave it before you {panel.change} it"
        else:
            notice = await _changed(asker, watcher.home, session, panel.change)
        listed, sessions = await listing()
        panel = panel.again(listed, notice)


def _ids_with(home: Path, words: str) -> Collection[str]:
    """The sessions in whose text all words stand, as `codex-py sessions search` finds them."""
    found = search_sessions(home, SearchRequest(words, limit=_MAX_HITS), os.environ)
    return {hit.session.id for hit in found}


async def _changed(asker: FormAsker, home: Path, session: SessionSummary, change: Change) -> str:
    """Rename, archive or delete a session; what came of it, in words."""
    work: Callable[[], str] = partial(_archived, session)
    if change == "rename":
        name = await asker.enter(rename_form(session))
        if name is None:
            return ""
        work = partial(_renamed, home, session.id, name)
    elif change == "delete":
        if not await asker.choose(delete_sheet(session)):
            return ""
        work = partial(_deleted, session)
    try:
        return await asyncio.to_thread(work)
    except UserError as error:
        return f"{error}" + (f"; {error.hint}" if error.hint else "")


def rename_form(session: SessionSummary) -> Form:
    """A line for the name of a session."""
    about = TextLine(_title(session), "menu.note")
    return Form("Name this session", (about,), initial=session.name, check=name_complaint, enter="keep this name")


def delete_sheet(session: SessionSummary) -> Sheet[bool]:
    """Whether a session is deleted; Enter says no at first."""
    return Sheet(
        title="Delete this session for good?",
        subject=(TextLine(_title(session), "strong"),),
        facts=(TextLine(f"{session.id}, and the sessions of its agents", "menu.note"),),
        options=(Option("y", "Yes, delete it", True), Option("n", "No, keep it", False)),
        refusal=False,
        default=1,
    )


def _renamed(home: Path, thread_id: str, name: str) -> str:
    return f"it is named `{save_name(home, thread_id, name)}` now"


def _archived(session: SessionSummary) -> str:
    archive_session(session.path)
    return f"archived; `codex-py unarchive {session.id}` brings it back"


def _deleted(session: SessionSummary) -> str:
    delete_session(session.path)
    return "deleted"


def session_listing(
    verb: Literal["resume", "fork"],
    own: Sequence[SessionSummary],
    everywhere: Sequence[SessionSummary],
    *,
    user_home: str,
    now: float,
    damaged: str = "",
) -> ListForm[str]:
    """Two lists, each the other one's other. `damaged` is a line about sessions that neither has."""

    def listing(sessions: Sequence[SessionSummary], where: str, other: str, *, with_directory: bool) -> ListForm[str]:
        return ListForm(
            title=f"{_TITLES[verb]} of {where}",
            entries=tuple(_entry(session, user_home, now, with_directory=with_directory) for session in sessions),
            about=(TextLine(damaged, "warn"),) if damaged else (),
            empty=f"no session of {where}",
            enter=verb,
            other=at_all if where == "this directory" else here,
            other_name=other,
        )

    def here() -> ListForm[str]:
        return listing(own, "this directory", "all directories", with_directory=False)

    def at_all() -> ListForm[str]:
        return listing(everywhere, "any directory", "only this directory", with_directory=True)

    return here()


def _title(session: SessionSummary) -> str:
    """The title of a session in lists."""
    return session.name or " ".join(session.first_prompt[:_SHOWN_PROMPT].split()) or session.id


def _entry(session: SessionSummary, user_home: str, now: float, *, with_directory: bool) -> ListEntry[str]:
    prompt = " ".join(session.first_prompt[:_SHOWN_PROMPT].split())
    age = describe_age(session.updated, now=now)
    directory = short_path(Path(session.cwd), user_home) if session.cwd else ""
    notes = [age, directory if with_directory else "", session.branch]
    about = [f"{session.tokens:,} tokens" if session.tokens else "", session.model, directory, session.branch]
    details = (
        TextLine(prompt or "(no prompt)"),
        TextLine(" · ".join(filter(None, about)), "menu.note"),
        TextLine(session.id, "menu.note"),
    )
    return ListEntry(
        session.id,
        _title(session),
        " · ".join(filter(None, notes)),
        details,
        words=f"{session.cwd} {session.branch} {session.id} {prompt}",
    )

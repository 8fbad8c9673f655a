"""Choosing a stored session to go on with, or to fork; there it can be renamed, archived and deleted too.

The list hides archived sessions until a search finds them. Choosing one brings it back, after a question.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from prompt_toolkit.application import get_app

from codex_py.errors import UserError
from codex_py.paths import short_path
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.listing import SessionQuery, describe_damaged, list_sessions, name_complaint, save_name
from codex_py.rollout.summary import SessionSummary
from codex_py.services.session_search import SearchHit, SearchRequest, excerpt_around, search_sessions
from codex_py.text.display import describe_age
from codex_py.ui.repl.panels.forms import Form, FormAsker, ListEntry, ListForm, Option, Sheet, TextLine, matching
from codex_py.ui.repl.panels.picker import PickerAction, PickerPanel

_TITLES: Final = {"resume": "Resume a session", "fork": "Fork a session"}
_ARCHIVED: Final = "archived"
_SHOWN_PROMPT: Final = 2000
_MAX_HITS: Final = 500
_SHOWN_BEFORE: Final = 12

Verb: TypeAlias = Literal["resume", "fork"]
Change: TypeAlias = Literal["rename", "archive", "delete"]
Hits: TypeAlias = Mapping[str, SearchHit]
_KEYS: Final[tuple[tuple[str, Change], ...]] = (("c-r", "rename"), ("c-a", "archive"), ("c-d", "delete"))


class SessionsPanel(PickerPanel[str]):
    """The list. `change` says what is to be done with the session it is settled with, None for going on with it, and
    `turn` is the turn after which it is forked, if it is.

    The search finds what lists show of a session, and a moment later what was said and done in it: `find` gives the
    newest turn with all words, by the ids of the sessions that have one.
    """

    def __init__(self, listing: ListForm[str], find: Callable[[str], Hits]) -> None:
        self.change: Change | None = None
        self.turn: int | None = None
        self._find = find
        self._hits: Hits = {}
        changes = [
            PickerAction(key, lambda change=change: change, partial(self._settle_for, change)) for key, change in _KEYS
        ]
        super().__init__(listing, actions=[PickerAction("c-t", self._fork_label, self._fork), *changes])

    def again(self, listing: ListForm[str], notice: str) -> SessionsPanel:
        """A new panel on the same one of the two lists, with the same search and selection."""
        is_other = listing.other is not None and listing.title != self.listing.title
        panel = SessionsPanel(listing.other() if is_other and listing.other else listing, self._find)
        panel.resume(self)
        panel.notify(notice)
        return panel

    def _narrow(self) -> None:
        self._hits = {}
        super()._narrow()

    def _found(self) -> tuple[ListEntry[str], ...]:
        return _with_hits(self._listing, super()._found(), self._hits, self._search.text)

    async def find_more(self, text: str) -> None:
        with suppress(UserError):
            self._hits = await asyncio.to_thread(self._find, text)
        before = self.selected
        self.show(self._listing, notice=self._notice)
        values = [entry.value for entry in self._shown]
        self._at = values.index(before.value) if before is not None and before.value in values else 0
        get_app().invalidate()

    def _fork_label(self) -> str:
        hit = self._hits.get(self.selected.value) if self.selected else None
        return f"fork after turn {hit.turn}" if hit else ""

    def _fork(self) -> None:
        if self.selected is not None and (hit := self._hits.get(self.selected.value)):
            self.turn = hit.turn
            self.settle(self.selected.value)

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


class ChosenSession(NamedTuple):
    """A session by its id, and what to do with it; `turn` is the last turn that a fork takes over, None for all."""

    id: str
    verb: Verb
    turn: int | None = None


async def choose_session(asker: FormAsker, verb: Verb, watcher: SessionWatcher) -> ChosenSession | None:
    """A session, the one written to last first: of this directory, and with Tab of any."""

    async def listing() -> tuple[ListForm[str], Sequence[SessionSummary]]:
        found = await asyncio.to_thread(_listed, watcher.home, None)
        own = await asyncio.to_thread(_listed, watcher.home, watcher.cwd)
        damaged = await asyncio.to_thread(describe_damaged, watcher.home, None)
        listed = session_listing(verb, own, found, user_home=watcher.user_home, now=watcher.now, damaged=damaged)
        return listed, found

    listed, sessions = await listing()
    find = partial(_newest_hits, watcher.home)
    if asker.show is None:
        return await _choose_in_lines(asker, verb, _searchable(listed, find), sessions)
    panel = SessionsPanel(listed, find)
    while (chosen := await asker.show(panel)) is not None:
        session = next(session for session in sessions if session.id == chosen)
        notice = ""
        if panel.change is None:
            choice = ChosenSession(chosen, verb) if panel.turn is None else ChosenSession(chosen, "fork", panel.turn)
            if not session.archived:
                return choice
            fault = await _bring_back(asker, session, choice.verb)
            if fault == "":
                return choice
            notice = fault or ""
        elif chosen == watcher.opened and panel.change != "rename":
            notice = f"this is the session that is open: leave it before you {panel.change} it"
        else:
            notice = await _changed(asker, watcher.home, session, panel.change)
        listed, sessions = await listing()
        panel = panel.again(listed, notice)
    return None


async def _choose_in_lines(
    asker: FormAsker, verb: Verb, listing: ListForm[str], sessions: Sequence[SessionSummary]
) -> ChosenSession | None:
    """A session from a list that nothing draws: what `choose_session` does without its changes."""
    chosen = await asker.pick(listing)
    session = next((session for session in sessions if session.id == chosen), None)
    if session is None or not session.archived:
        return ChosenSession(session.id, verb) if session else None
    fault = await _bring_back(asker, session, verb)
    if fault:
        raise UserError(fault)
    return ChosenSession(session.id, verb) if fault == "" else None


async def _bring_back(asker: FormAsker, session: SessionSummary, verb: Verb) -> str | None:
    """Ask whether to bring a session back from the archive, and do so; what went wrong, None when the user says no."""
    if not await asker.choose(unarchive_sheet(session, verb)):
        return None
    return await _outcome(partial(_unarchived, session))


def _searchable(listing: ListForm[str], find: Callable[[str], Hits]) -> ListForm[str]:
    """The list, and its other one, with a search in what was said and done."""

    def found(words: str) -> tuple[ListEntry[str], ...]:
        hits: Hits = {}
        with suppress(UserError):
            hits = find(words)
        return _with_hits(listing, matching((*listing.entries, *listing.hidden), words), hits, words)

    other = listing.other
    return listing._replace(find=found, other=other and (lambda: _searchable(other(), find)))


def _with_hits(
    listing: ListForm[str], found: tuple[ListEntry[str], ...], hits: Hits, words: str
) -> tuple[ListEntry[str], ...]:
    """The entries found by what lists show of them, then those found by what they contain, with an excerpt."""
    shown = {entry.value for entry in found}
    entries = (*listing.entries, *listing.hidden)
    found = (*found, *(entry for entry in entries if entry.value in hits and entry.value not in shown))
    split = words.casefold().split()
    return tuple(_with_excerpt(each, hits[each.value], split) if each.value in hits else each for each in found)


def _listed(home: Path, cwd: Path | None) -> list[SessionSummary]:
    return [*list_sessions(home, SessionQuery(cwd)), *list_sessions(home, SessionQuery(cwd, archived=True))]


def _newest_hits(home: Path, words: str) -> Hits:
    """The newest turn of each session in which all words stand, as `codex-py sessions search` finds them."""
    found = search_sessions(home, SearchRequest(words, limit=_MAX_HITS, per_session=1), os.environ)
    return {hit.session.id: hit for hit in found}


def _with_excerpt(entry: ListEntry[str], hit: SearchHit, words: Sequence[str]) -> ListEntry[str]:
    """An entry that shows what was found in the session, unless its label already does."""
    if all(word in entry.label.casefold() for word in words):
        return entry
    archived = f"{_ARCHIVED} · " if hit.session.archived else ""
    note = f"{archived}turn {hit.turn} · {excerpt_around(hit.excerpt, words, before=_SHOWN_BEFORE)}"
    found = TextLine(f"turn {hit.turn} · {hit.where}: {hit.excerpt}")
    return entry._replace(note=note, details=(found, *entry.details))


async def _changed(asker: FormAsker, home: Path, session: SessionSummary, change: Change) -> str:
    """Rename, archive or delete a session; what came of it, in words."""
    work: Callable[[], str] = partial(_archived, session)
    if change == "archive" and session.archived:
        return await _outcome(partial(_unarchived, session)) or "it is back from the archive"
    if change == "rename":
        name = await asker.enter(rename_form(session))
        if name is None:
            return ""
        work = partial(_renamed, home, session.id, name)
    elif change == "delete":
        if not await asker.choose(delete_sheet(session)):
            return ""
        work = partial(_deleted, session)
    return await _outcome(work)


async def _outcome(work: Callable[[], str]) -> str:
    """The message of a change, or the reason why it failed."""
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


def unarchive_sheet(session: SessionSummary, verb: Verb) -> Sheet[bool]:
    """Whether an archived session is brought back, to go on with it or to fork it."""
    return Sheet(
        title="Bring this session back from the archive?",
        subject=(TextLine(_title(session), "strong"),),
        facts=(TextLine(session.id, "menu.note"),),
        options=(Option("y", f"Yes, and {verb} it", True), Option("n", "No, leave it there", False)),
        refusal=False,
    )


def _renamed(home: Path, thread_id: str, name: str) -> str:
    return f"it is named `{save_name(home, thread_id, name)}` now"


def _archived(session: SessionSummary) -> str:
    archive_session(session.path)
    return f"archived; `codex-py unarchive {session.id}` brings it back"


def _unarchived(session: SessionSummary) -> str:
    unarchive_session(session.path)
    return ""


def _deleted(session: SessionSummary) -> str:
    delete_session(session.path)
    return "deleted"


def session_listing(
    verb: Verb,
    own: Sequence[SessionSummary],
    everywhere: Sequence[SessionSummary],
    *,
    user_home: str,
    now: float,
    damaged: str = "",
) -> ListForm[str]:
    """Two lists, each the other one's other; archived sessions are hidden. `damaged` is about sessions neither has."""

    def listing(sessions: Sequence[SessionSummary], where: str, other: str, *, with_directory: bool) -> ListForm[str]:
        entries = [(each.archived, _entry(each, user_home, now, with_directory=with_directory)) for each in sessions]
        return ListForm(
            title=f"{_TITLES[verb]} of {where}",
            entries=tuple(entry for is_archived, entry in entries if not is_archived),
            hidden=tuple(entry for is_archived, entry in entries if is_archived),
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
    notes = [_ARCHIVED if session.archived else "", age, directory if with_directory else "", session.branch]
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

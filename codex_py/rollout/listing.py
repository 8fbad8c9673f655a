"""Choosing among stored sessions: which ones are offered, in which order, and which a search leaves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from codex_py.errors import UserError
from codex_py.protocol.value import Value
from codex_py.rollout.index import read_index
from codex_py.rollout.names import read_names
from codex_py.rollout.summary import SessionSummary


class SessionQuery(Value):
    """Which sessions are asked for: those that last worked in `cwd` (None: anywhere) and match `search`.

    With `agents` those of agents, which are left out otherwise, are among them; with `parent` only those of the agents
    that this session started.
    """

    cwd: Path | None = None
    search: str = ""
    archived: bool = False
    agents: bool = False
    parent: str = ""


def list_sessions(home: Path, query: SessionQuery) -> list[SessionSummary]:
    """The sessions a person may go on with, the one written to last first, with their names.

    What counts is the time stamp of the last record, not the file's name or its modification time.
    """
    names = read_names(home)
    found = (session for session in read_index(home, archived=query.archived) if _is_wanted(session, query))
    offered = _in_directory(found, query.cwd)
    named = (session._replace(name=names[session.id]) if session.id in names else session for session in offered)
    return newest_first(matching(named, query.search))


def newest_first(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    """The sessions by the time stamp of their last record, and by id among those with the same."""
    # Without its `Z`, a stamp without a fraction sorts before one of the same second that has it.
    return sorted(sessions, key=lambda session: (session.updated.rstrip("Z"), session.id), reverse=True)


def matching(sessions: Iterable[SessionSummary], search: str) -> list[SessionSummary]:
    """The sessions in whose name, first prompt, folder, branch or id every word of `search` stands, in any case."""
    words = search.casefold().split()
    return [session for session in sessions if all(word in _searched(session) for word in words)]


def latest_session(home: Path, cwd: Path | None) -> Path:
    """The session written to last among those that last worked in `cwd` (None: anywhere); `UserError` when none did."""
    found = list_sessions(home, SessionQuery(cwd))
    if found:
        return found[0].path
    if cwd is None:
        raise UserError("no session to resume", hint="start one by giving a prompt without `resume`")
    raise UserError(f"no session to resume in `{cwd}`", hint="name a session by its id, or add `--all`")


def _is_wanted(session: SessionSummary, query: SessionQuery) -> bool:
    if query.parent:
        return session.parent == query.parent
    return query.agents or session.source != "subagent"


def _searched(session: SessionSummary) -> str:
    return "\n".join((session.name, session.first_prompt, session.cwd, session.branch, session.id)).casefold()


def _in_directory(sessions: Iterable[SessionSummary], cwd: Path | None) -> Iterable[SessionSummary]:
    if cwd is None:
        yield from sessions
        return
    wanted = os.path.realpath(cwd)
    # Sessions by the thousand work in a few folders.
    is_wanted: dict[str, bool] = {}
    for session in sessions:
        if session.cwd not in is_wanted:
            is_wanted[session.cwd] = _real(session.cwd) == wanted
        if is_wanted[session.cwd]:
            yield session


def _real(directory: str) -> str:
    try:
        return os.path.realpath(directory)
    except (OSError, ValueError):
        return directory

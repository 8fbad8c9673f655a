"""The stored sessions that a user chooses from: found, sorted, archived."""

from __future__ import annotations

from pathlib import Path

from codex_py.errors import UserError
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.find import find_exactly
from codex_py.rollout.listing import SessionQuery, checked_name, list_sessions, read_names, save_name
from codex_py.rollout.summary import SessionSummary, read_summary
from codex_py.rollout.transcript import read_turns

__all__ = [
    "SessionQuery",
    "SessionSummary",
    "archive_session",
    "delete_session",
    "find_exactly",
    "list_sessions",
    "name_session",
    "name_trouble",
    "offered_sessions",
    "summary_of",
    "turns_of",
    "unarchive_session",
]


def offered_sessions(home: Path, *, cwd: Path | None, search: str = "") -> list[SessionSummary]:
    """The sessions to choose from, the one written to last first: those of `cwd` (None: of any directory) in whose
    name, first prompt, directory, branch or id every word of `search` stands.
    """
    return list_sessions(home, SessionQuery(cwd, search))


def summary_of(home: Path, path: Path) -> SessionSummary:
    """What a list shows of the session in this file. Raise `UserError` when nothing in it can be read."""
    summary = read_summary(path)
    if summary is None:
        raise UserError(f"cannot read session `{path}`: no record in it is whole")
    return summary._replace(name=read_names(home).get(summary.id, ""))


def name_trouble(name: str) -> str:
    """Why a session cannot have this name; empty when it can."""
    try:
        checked_name(name)
    except UserError as error:
        return str(error)
    return ""


def name_session(home: Path, thread_id: str, name: str) -> str:
    """Name a session; gives back the name as it is kept. Raise `UserError` for one that cannot be."""
    stored_name = checked_name(name)
    save_name(home, thread_id, stored_name)
    return stored_name


def turns_of(path: Path) -> list[tuple[int, str, str]]:
    """The turns of a session: number, time, and the beginning of the message."""
    return [(turn.number, turn.timestamp[:16], " ".join(turn.prompt.split())[:100]) for turn in read_turns(path)]

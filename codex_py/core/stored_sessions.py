"""Taking up a stored session: the one that is meant, as it is or as it was after one of its turns."""

from __future__ import annotations

from pathlib import Path

from codex_py.rollout.find import find_session
from codex_py.rollout.fork import inherited_lines
from codex_py.rollout.listing import SessionQuery, latest_session, list_sessions
from codex_py.rollout.reader import StoredSession, load_session
from codex_py.rollout.recorder import Inherited
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.turns import end_of_turn


def load_stored(home: Path, *, wanted: str | None, cwd: Path | None, through_turn: int | None = None) -> StoredSession:
    """The session of an id or a name; without one, the one written to last among those of `cwd` (None: of any).

    With `through_turn`, as it was when that turn had ended. Raise `UserError` for what is not there.
    """
    path = latest_session(home, cwd) if wanted is None else find_session(home, wanted)
    return load_session(path, before=None if through_turn is None else end_of_turn(path, through_turn))


def inherited_from(stored: StoredSession) -> Inherited:
    """What a fork of a stored session begins with."""
    return Inherited(lambda: inherited_lines(stored.path, before=stored.next_ordinal), stored.next_ordinal)


def offered_sessions(home: Path, *, cwd: Path | None, search: str = "") -> list[SessionSummary]:
    """The sessions to choose from, the one written to last first: those of `cwd` (None: of any folder) in whose name,
    first prompt, folder, branch or id every word of `search` stands.
    """
    return list_sessions(home, SessionQuery(cwd, search))

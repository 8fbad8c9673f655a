"""Resuming a stored session: found, and read as it is or as it was after one of its turns."""

from __future__ import annotations

from pathlib import Path

from codex_py.rollout.format import StoredSession
from codex_py.rollout.listing import find_session, latest_session
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import Inherited
from codex_py.rollout.records import inherited_lines
from codex_py.rollout.transcript import end_of_turn


def load_stored(home: Path, *, name: str | None, cwd: Path | None, through_turn: int | None = None) -> StoredSession:
    """The session of an id or a name; without one, the one written to last among those of `cwd` (None: of any).

    With `through_turn`, as it was when that turn had ended. Raises `UserError` for what does not exist.
    """
    path = find_stored(home, name=name, cwd=cwd)
    return load_session(path, before=None if through_turn is None else end_of_turn(path, through_turn))


def find_stored(home: Path, *, name: str | None, cwd: Path | None) -> Path:
    """The file of that session, unread. Raises `UserError` when there is none."""
    return latest_session(home, cwd) if name is None else find_session(home, name)


def inherited_from(stored: StoredSession) -> Inherited:
    """The rollout lines that a fork takes over from a stored session."""
    return Inherited(lambda: inherited_lines(stored.path, before=stored.next_ordinal), stored.next_ordinal)

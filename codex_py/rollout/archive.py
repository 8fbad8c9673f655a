"""Archives, restores and deletes sessions, except while a process writes to them.

Codex CLI keeps archived sessions in the same place.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from codex_py.errors import UserError
from codex_py.paths import is_directory, lock, make_private_dir
from codex_py.rollout.files import (
    ARCHIVE,
    CHECKPOINTS,
    ThreadLock,
    active_path,
    active_writer,
    home_of,
    is_archived,
    open_rollout,
    thread_of,
)
from codex_py.rollout.listing import forget_name, read_index
from codex_py.rollout.summary import SessionSummary
from codex_py.text.files import os_reason


def archive_session(path: Path) -> Path:
    """Archive a session; gives back its new path. Raise `UserError` when it is archived already, or in use."""
    if is_archived(path):
        raise UserError(f"session `{thread_of(path)}` is archived already")
    return _move(path, home_of(path) / ARCHIVE / path.name)


def unarchive_session(path: Path) -> Path:
    """Restore an archived session; gives back its new path. Raise `UserError` when it is not archived, or in use."""
    if not is_archived(path):
        raise UserError(f"session `{thread_of(path)}` is not archived")
    return _move(path, active_path(home_of(path), path))


def delete_session(path: Path) -> None:
    """Delete a session, its name, its checkpoints, and the sessions of its agents.

    Raise `UserError` when one of them is in use, or when forks read its file.
    """
    home = home_of(path)
    _delete(path, [*read_index(home), *read_index(home, archived=True)])


def delete_expired(home: Path, before: float) -> int:
    """Delete the sessions whose files were last written before a moment (seconds since the epoch); how many these were.

    Sessions in use stay, and so do those that a newer fork reads.
    """
    everything = [*read_index(home), *read_index(home, archived=True)]
    expired = [session for session in everything if not session.parent and _written(session.path) < before]
    count = 0
    # A fork is newer than what it was forked from.
    for session in sorted(expired, key=lambda session: _written(session.path), reverse=True):
        with suppress(UserError):
            _delete(session.path, everything)
            everything.remove(session)
            count += 1
    return count


def _written(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return math.inf


def _delete(path: Path, everything: Sequence[SessionSummary]) -> None:
    home, thread_id = home_of(path), thread_of(path)
    forks = [session.id for session in everything if session.base == thread_id]
    if forks:
        named = ", ".join(f"`{fork}`" for fork in forks[:8])
        raise UserError(
            f"cannot delete session `{thread_id}`: forks of it read their beginning from its file: {named}",
            hint="delete those first, or archive this one",
        )
    for each in (*_agents_of(thread_id, everything), path):
        with _unused(each):
            each.unlink()
        forget_name(home, thread_of(each))
        if is_directory(checkpoints := home / CHECKPOINTS / thread_of(each)):
            shutil.rmtree(checkpoints)


def _agents_of(thread_id: str, everything: Sequence[SessionSummary]) -> list[Path]:
    """The sessions of a session's agents and of their agents, the deepest first."""
    found: dict[str, Path] = {}
    above = {thread_id}
    while above:
        below = {
            session.id: session.path for session in everything if session.parent in above and session.id != thread_id
        }
        above = below.keys() - found.keys()
        found |= below
    return list(found.values())[::-1]


def _move(path: Path, target: Path) -> Path:
    with _unused(path):
        if os.path.lexists(target):
            raise UserError(f"cannot move session `{thread_of(path)}`: `{target}` is there already")
        make_private_dir(target.parent)
        path.rename(target)
    return target


@contextmanager
def _unused(path: Path) -> Generator[None]:
    """Hold a session's locks; a failure of the system becomes a `UserError`."""
    try:
        descriptor = open_rollout(path, os.O_RDONLY)
        try:
            if not lock(descriptor):
                raise active_writer(thread_of(path))
            held = ThreadLock(home_of(path), thread_of(path))
            try:
                yield
            finally:
                held.release()
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"cannot move or remove `{path}`: {os_reason(error)}") from error

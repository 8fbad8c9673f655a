"""Finding a stored session by what a user calls it: its id, or the name they gave it."""

from __future__ import annotations

from pathlib import Path

from codex_py.errors import UsageError, UserError
from codex_py.protocol.encoding import is_uuid
from codex_py.rollout.files import archived_files, compressed_files, is_archived, session_files, thread_of
from codex_py.rollout.listing import newest_first, read_index, read_names
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line


def find_session(home: Path, wanted: str) -> Path:
    """The file of a session that can be gone on with; of several with the name, the one written to last.

    Raise `UserError` for one that is unknown or archived.
    """
    thread_id = wanted.strip().lower()
    if not is_uuid(thread_id):
        found = _named(home, wanted)
        if found and not is_archived(found[0]):
            return found[0]
        if not found:
            raise _unknown(home, wanted)
        thread_id = thread_of(found[0])
    for path in session_files(home):
        if thread_of(path) == thread_id:
            return path
    if any(thread_of(path) == thread_id for path in archived_files(home)):
        raise UserError(f"session `{thread_id}` is archived", hint=f"`codex-py unarchive {thread_id}` brings it back")
    raise _unknown(home, thread_id)


def find_exactly(home: Path, wanted: str) -> Path:
    """The file of the one session of that id or name, archived or not; `UserError` also when a name is ambiguous."""
    thread_id = wanted.strip().lower()
    if is_uuid(thread_id):
        found = [path for path in (*session_files(home), *archived_files(home)) if thread_of(path) == thread_id]
    else:
        found = _named(home, wanted)
    if not found:
        raise _unknown(home, wanted)
    if len(found) > 1 and not is_uuid(thread_id):
        ids = ", ".join(f"`{thread_of(path)}`" for path in found[:8])
        raise UsageError(f"{len(found)} sessions are named `{_shown(wanted)}`: {ids}", hint="give the id")
    return found[0]


def _named(home: Path, wanted: str) -> list[Path]:
    """The sessions of a name: those that are not archived first, each kind by what was written to last."""
    name = " ".join(wanted.split())
    ids = {thread_id for thread_id, named in read_names(home).items() if named == name}
    if not name or not ids:
        return []
    indexes = (read_index(home), read_index(home, archived=True))
    return [session.path for index in indexes for session in newest_first(each for each in index if each.id in ids)]


def _unknown(home: Path, wanted: str) -> UserError:
    thread_id = wanted.strip().lower()
    if not thread_id:
        return UsageError(
            "the name or id of the session is empty", hint="`codex-py sessions list --all` lists the sessions"
        )
    if not is_uuid(thread_id):
        guess = did_you_mean(wanted, read_names(home).values())
        return UsageError(
            f"no session with the name or id `{_shown(wanted)}`",
            hint=guess or "`codex-py sessions list --all` lists them",
        )
    for path in compressed_files(home):
        if thread_of(path) == thread_id:
            return UserError(
                f"session `{thread_id}` is compressed, which codex-py does not read: `{path}`",
                hint=f"`zstd -d --rm {path}` unpacks it",
            )
    return UsageError(f"no session with id `{thread_id}`", hint="`codex-py sessions list --all` lists them")


def _shown(wanted: str) -> str:
    return sanitize_line(wanted[:80])

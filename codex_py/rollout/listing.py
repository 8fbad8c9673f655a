"""Lists of stored sessions: their index, names, order and search, and finding one session by its id or name.
The file is shared with Codex CLI, which appends to it under a lock beside it.

The index is read from the session files and cached by path, size and mtime. Nothing is only in the cache: it may be
damaged, removed, or written by several processes at once.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UsageError, UserError
from codex_py.paths import open_private
from codex_py.protocol.encoding import as_object, decode_json, encode_json, is_uuid, timestamp
from codex_py.protocol.value import Value
from codex_py.replace_file import replace_file
from codex_py.rollout.files import (
    compressed_files,
    files_of_thread,
    is_archived,
    open_rollout,
    session_names,
    thread_of,
)
from codex_py.rollout.summary import DamagedSession, SessionSummary, read_damaged, read_summary
from codex_py.text.files import load_checked, os_reason, read_lines, save_checked
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

MAX_NAME: Final = 120
_FILE: Final = "session_index.jsonl"
_LOCK: Final = "session_index.jsonl.lock"
_MAX_LINE: Final = 16 * 1024


def read_names(home: Path) -> dict[str, str]:
    """The names by thread id. Invalid lines are skipped; without a file there are no names."""
    return {entry["id"]: entry["thread_name"] for _, entry in _entries(home / _FILE) if entry}


def checked_name(name: str) -> str:
    """A name as it is stored: one line, stripped. Raise `UsageError` for an invalid one, such as one like an id."""
    cleaned = " ".join(name.split())
    if not cleaned:
        raise UsageError("a session's name must not be empty", hint="`codex-py rename SESSION NAME`")
    if len(cleaned) > MAX_NAME:
        raise UsageError(f"a session's name has at most {MAX_NAME} characters, this one {len(cleaned)}")
    if not cleaned.isprintable():
        raise UsageError(f"a session's name must be printable: `{ascii(cleaned)[1:-1]}`")
    if is_uuid(cleaned.lower()):
        raise UsageError(f"a session's name must not look like an id: `{cleaned}`")
    return cleaned


def name_complaint(name: str) -> str:
    """Why a session cannot have this name; empty when it can."""
    try:
        checked_name(name)
    except UserError as error:
        return str(error)
    return ""


def save_name(home: Path, thread_id: str, name: str) -> str:
    """Name a session; gives back the name as `checked_name` has it. Raise `UserError` when it cannot be stored."""
    name = checked_name(name)
    entry = {"id": thread_id, "thread_name": name, "updated_at": timestamp()}
    with _locked(home):
        descriptor = open_private(home / _FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (b"\n" if torn else b"") + encode_json(entry) + b"\n")
        finally:
            os.close(descriptor)
    return name


def forget_name(home: Path, thread_id: str) -> None:
    """Remove a session's name from the file. Raise `UserError` when that fails."""
    path = home / _FILE
    if not any(entry.get("id") == thread_id for _, entry in _entries(path)):
        return
    with _locked(home):
        replace_file(path, b"".join(line for line, entry in _entries(path) if entry.get("id") != thread_id))


@contextmanager
def _locked(home: Path) -> Generator[None]:
    try:
        descriptor = open_private(home / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
    except OSError as error:
        raise UserError(f"cannot write `{home / _FILE}`: {os_reason(error)}") from error


def _entries(path: Path) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Each line with its entry, which is empty for an invalid line."""
    try:
        descriptor = open_rollout(path, os.O_RDONLY)
    except (OSError, UserError):
        return
    with os.fdopen(descriptor, "rb") as stream:
        for line in read_lines(stream, limit=_MAX_LINE):
            yield line, _entry(line)


def _entry(line: bytes) -> dict[str, Any]:
    try:
        entry = as_object(decode_json(line))
    except ValueError:
        return {}
    named = isinstance(entry.get("id"), str) and isinstance(entry.get("thread_name"), str)
    return entry if named else {}


_FORMAT: Final = b"codex-py sessions 5"
_MAX_BYTES: Final = 256 * 1024 * 1024
_FIELDS: Final = len(SessionSummary._fields) - 2
_DAMAGE: Final = (ValueError, TypeError, LookupError, RecursionError)

_Entry = list[Any]


def read_index(home: Path, *, archived: bool = False) -> list[SessionSummary]:
    """Every session that is not archived, or every one that is, in no particular order and without names.

    Files that hold no session are left out.
    """
    return _summaries(home, _read_entries(home, archived=archived))


def _summaries(home: Path, entries: Mapping[str, _Entry]) -> list[SessionSummary]:
    return [SessionSummary(f"{home}/{name}", *fields) for name, (_, _, fields) in entries.items() if fields is not None]


def damaged_sessions(home: Path, cwd: Path | None, *, archived: bool = False) -> list[DamagedSession]:
    """The files that lists leave out because their header is damaged: those of `cwd`, or of an unknown directory."""
    return _damaged(home, _read_entries(home, archived=archived), cwd)


def _damaged(home: Path, entries: Mapping[str, _Entry], cwd: Path | None) -> list[DamagedSession]:
    unread = [name for name, entry in entries.items() if entry[2] is None]
    found = [damaged for name in unread if (damaged := read_damaged(home / name)) is not None]
    wanted = "" if cwd is None else real_directory(str(cwd))
    return [damaged for damaged in found if not (wanted and damaged.cwd) or real_directory(damaged.cwd) == wanted]


def describe_damaged(home: Path, cwd: Path | None, *, archived: bool = False) -> str:
    """How many sessions no list shows because their files are damaged, those of `cwd` or of no known directory; empty
    without any."""
    count = len(damaged_sessions(home, cwd, archived=archived))
    if not count:
        return ""
    flags = ("" if cwd else " --all") + (" --archived" if archived else "")
    these, names = ("session is", "it") if count == 1 else ("sessions are", "them")
    return f"{count} damaged {these} not listed; `codex-py sessions list{flags}` names {names}"


def _read_entries(home: Path, *, archived: bool) -> dict[str, _Entry]:
    cache = home / "cache" / f"sessions{'-archived' if archived else ''}.json"
    known = _load(cache)
    current = {name: _current(home, name, known.get(name)) for name in session_names(home, archived=archived)}
    entries = {name: entry for name, entry in current.items() if entry is not None}
    if entries != known:
        save_checked(cache, _FORMAT, json.dumps(entries, separators=(",", ":")).encode(), max_bytes=_MAX_BYTES)
    return entries


def _current(home: Path, name: str, known: _Entry | None) -> _Entry | None:
    """The cached entry of an unchanged file, else a new one from the file; None if the file is gone."""
    try:
        status = os.lstat(f"{home}/{name}")
    except OSError:
        return None
    if known is not None and known[:2] == [status.st_size, status.st_mtime_ns]:
        return known
    summary = read_summary(home / name)
    return [status.st_size, status.st_mtime_ns, None if summary is None else list(summary[1 : 1 + _FIELDS])]


def _load(cache: Path) -> dict[str, _Entry]:
    body = load_checked(cache, _FORMAT, max_bytes=_MAX_BYTES)
    try:
        entries = as_object(json.loads(body or b"{}"))
        return entries if all(map(_is_entry, entries.values())) else {}
    except _DAMAGE:
        return {}


def _is_entry(entry: Any) -> bool:
    return len(entry) == 3 and (entry[2] is None or len(entry[2]) == _FIELDS)


class SessionQuery(Value):
    """Selects the sessions that last worked in `cwd` (None: anywhere) and match `search`.

    Agents' sessions are only included with `agents`; with `parent` only those of the agents that this session started.
    """

    cwd: Path | None = None
    search: str = ""
    archived: bool = False
    agents: bool = False
    parent: str = ""


def list_sessions(home: Path, query: SessionQuery) -> list[SessionSummary]:
    """The selected sessions with their names, the one written to last first.

    They are sorted by the time stamp of the last record, not by the file's name or modification time.
    """
    return _selected(home, read_index(home, archived=query.archived), query)


def list_with_damaged(home: Path, query: SessionQuery) -> tuple[list[SessionSummary], list[DamagedSession]]:
    """`list_sessions`, and `damaged_sessions` of the same directory, from one reading."""
    entries = _read_entries(home, archived=query.archived)
    return _selected(home, _summaries(home, entries), query), _damaged(home, entries, query.cwd)


def _selected(home: Path, sessions: Iterable[SessionSummary], query: SessionQuery) -> list[SessionSummary]:
    names = read_names(home)
    found = (session for session in sessions if _is_wanted(session, query))
    offered = _in_directory(found, query.cwd)
    named = (session._replace(name=names[session.id]) if session.id in names else session for session in offered)
    return newest_first(matching(named, query.search))


def load_summary(home: Path, path: Path) -> SessionSummary:
    """The list entry of the session in a file, with its name. Raises `UserError` when no record can be read."""
    summary = read_summary(path)
    if summary is None:
        raise UserError(f"cannot read session `{path}`: no record in it is whole")
    return summary._replace(name=read_names(home).get(summary.id, ""))


def newest_first(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    """The sessions by the time stamp of their last record, and by id among those with the same."""
    return sorted(sessions, key=lambda session: (_moment(session.updated), session.id), reverse=True)


def _moment(stamp: str) -> str:
    # Without its `Z`, a stamp without a fraction sorts before one of the same second that has it.
    return stamp.rstrip("Z")


def matching(sessions: Iterable[SessionSummary], search: str) -> list[SessionSummary]:
    """The sessions with every word of `search` in their name, first prompt, directory, branch or id, in any case."""
    words = search.casefold().split()
    return [session for session in sessions if all(word in _searched(session) for word in words)]


def latest_session(home: Path, cwd: Path | None) -> Path:
    """The file of the session that was written to last, of those that last worked in `cwd` (None: anywhere).

    Raise `UserError` when there is none, or when it is damaged: the user does not mean an older one.
    """
    found, unreadable = list_with_damaged(home, SessionQuery(cwd))
    newest = _moment(found[0].updated) if found else ""
    for damaged in unreadable:
        if _moment(damaged.updated) >= newest:
            hint = f"`codex-py resume {found[0].id}` opens the one before it" if found else "start a new session"
            raise UserError(f"cannot resume the latest session, `{damaged.path}`: its first line is damaged", hint=hint)
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
    # Sessions by the thousand work in a few directories.
    is_wanted: dict[str, bool] = {}
    for session in sessions:
        if session.cwd not in is_wanted:
            is_wanted[session.cwd] = real_directory(session.cwd) == wanted
        if is_wanted[session.cwd]:
            yield session


def real_directory(directory: str) -> str:
    """The real path of a directory; the path itself where it has none."""
    try:
        return os.path.realpath(directory)
    except (OSError, ValueError):
        return directory


def find_session(home: Path, wanted: str) -> Path:
    """The file of a session that can be resumed; of several with the same name, the one written to last.

    Raise `UserError` for an unknown or archived session.
    """
    thread_id = wanted.strip().lower()
    if not is_uuid(thread_id):
        found = _named(home, wanted)
        if found and not is_archived(found[0]):
            return found[0]
        if not found:
            raise _unknown(home, wanted)
        thread_id = thread_of(found[0])
    for path in files_of_thread(home, thread_id):
        return path
    if any(files_of_thread(home, thread_id, archived=True)):
        raise UserError(f"session `{thread_id}` is archived", hint=f"`codex-py unarchive {thread_id}` brings it back")
    raise _unknown(home, thread_id)


def find_exactly(home: Path, wanted: str) -> Path:
    """The file of the session with an id or name, archived or not. Raise `UserError` if it is unknown or ambiguous."""
    thread_id = wanted.strip().lower()
    if is_uuid(thread_id):
        found = [path for archived in (False, True) for path in files_of_thread(home, thread_id, archived=archived)]
    else:
        found = _named(home, wanted)
    if not found:
        raise _unknown(home, wanted)
    if len(found) > 1 and not is_uuid(thread_id):
        ids = ", ".join(f"`{thread_of(path)}`" for path in found[:8])
        raise UsageError(f"{len(found)} sessions are named `{_shown(wanted)}`: {ids}", hint="give the id")
    return found[0]


def _named(home: Path, wanted: str) -> list[Path]:
    """The files of the sessions with a name: active ones first, then archived ones, each with the newest first."""
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

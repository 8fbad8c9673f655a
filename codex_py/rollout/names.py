"""The names users give their sessions: `session_index.jsonl`, one line a naming, the last one of a session counts.

The file is shared with Codex CLI, which appends to it under a lock beside it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UsageError, UserError
from codex_py.paths import open_private
from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.protocol.ids import is_uuid, timestamp, uuid7
from codex_py.rollout.files import open_rollout, os_reason
from codex_py.text.jsonl import read_lines

MAX_NAME: Final = 120
_FILE: Final = "session_index.jsonl"
_LOCK: Final = "session_index.jsonl.lock"
_MAX_LINE: Final = 16 * 1024


def read_names(home: Path) -> dict[str, str]:
    """The names by thread id. Lines that make no sense are skipped; no file, no names."""
    return {entry["id"]: entry["thread_name"] for _, entry in _entries(home / _FILE) if entry}


def checked_name(name: str) -> str:
    """A name as it is kept: one line, no spaces around. Raise `UsageError` for one that cannot be told from an id."""
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


def save_name(home: Path, thread_id: str, name: str) -> None:
    """Name a session; `name` has been checked. Raise `UserError` when it cannot be kept."""
    entry = {"id": thread_id, "thread_name": name, "updated_at": timestamp()}
    with _locked(home):
        descriptor = open_private(home / _FILE, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            os.write(descriptor, (b"\n" if torn else b"") + encode_json(entry) + b"\n")
        finally:
            os.close(descriptor)


def forget_name(home: Path, thread_id: str) -> None:
    """Take a session's lines out of the file. Raise `UserError` when that fails."""
    path = home / _FILE
    if not any(entry.get("id") == thread_id for _, entry in _entries(path)):
        return
    draft = path.with_name(f".{path.name}.{uuid7()}")
    with _locked(home):
        remaining = [line for line, entry in _entries(path) if entry.get("id") != thread_id]
        try:
            with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                file.writelines(remaining)
            draft.replace(path)
        except OSError:
            with suppress(OSError):
                draft.unlink()
            raise


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
    """Each line, with what it says or an empty object."""
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

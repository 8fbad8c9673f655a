"""Where rollout files are, which of them may be opened, and which process may write to one.

Files can come from elsewhere, so only the user's own regular files in the sessions directory are read, and no links,
FIFOs, devices or files of other users.

This program locks the rollout file itself. Codex CLI locks `thread-writer-locks/<id>.lock` and removes that file
afterwards, both under a lock of the directory; a session of codex-py locks that file too, so that each sees the other.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir, open_private

ARCHIVE: Final = "archived_sessions"
# Where the checkpoints of each session are, by its id; package `checkpoints` writes them.
CHECKPOINTS: Final = "checkpoints"

_DATE: Final = r"\d{2,4}"
_NAME: Final = r"rollout-(\d{4})-(\d\d)-(\d\d)T\d\d-\d\d-\d\d-([0-9a-f-]{36})\.jsonl"
# How newer versions of Codex CLI put old sessions away.
_COMPRESSED = ".zst"


def session_files(home: Path) -> Iterator[Path]:
    """The rollout files below `sessions/`, the newest name first. Directories that are links are not entered."""
    return map(home.__truediv__, session_names(home))


def archived_files(home: Path) -> Iterator[Path]:
    """The rollout files of archived sessions, the newest name first."""
    return map(home.__truediv__, session_names(home, archived=True))


def files_of_thread(home: Path, thread_id: str, *, archived: bool = False) -> Iterator[Path]:
    """The rollout files of one session: soon found among many thousands."""
    directory, depth = (ARCHIVE, 0) if archived else ("sessions", 3)
    found = map(home.__truediv__, _below(str(home), directory, depth, thread_id=thread_id))
    return (path for path in found if thread_of(path) == thread_id)


def session_names(home: Path, *, archived: bool = False) -> Iterator[str]:
    """The same as text, relative to `home`, because creating a `Path` takes longer than `lstat`."""
    return _below(str(home), ARCHIVE, 0) if archived else _below(str(home), "sessions", 3)


def compressed_files(home: Path) -> Iterator[Path]:
    """The rollout files that Codex CLI has compressed, which this program does not read, archived ones too."""
    for name in (*_below(str(home), "sessions", 3, _COMPRESSED), *_below(str(home), ARCHIVE, 0, _COMPRESSED)):
        yield home / name


def thread_of(path: Path) -> str:
    """The thread id in a rollout file's name, or an empty text."""
    match = re.fullmatch(_NAME, path.name.removesuffix(_COMPRESSED))
    return match[4] if match else ""


def is_archived(path: Path) -> bool:
    """Whether a rollout file lies among the archived ones."""
    return path.parent.name == ARCHIVE


def active_path(home: Path, path: Path) -> Path:
    """Where a rollout file of this name belongs while its session is not archived."""
    match = re.fullmatch(_NAME, path.name)
    if match is None:
        raise unreadable(path, "its name is not that of a session")
    return home.joinpath("sessions", *match.group(1, 2, 3), path.name)


def home_of(path: Path) -> Path:
    """The `CODEX_HOME` a rollout file lies in."""
    above = path.absolute().parents
    return above[1] if is_archived(path) else above[min(4, len(above) - 1)]


def open_rollout(path: Path, flags: int) -> int:
    """Open a stored session. Raise `UserError` when it is no regular file of the user, `OSError` for other failures."""
    # Without blocking: opening a FIFO would wait for its other end.
    try:
        descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise unreadable(path, "not a regular file") from error
        raise
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise unreadable(path, "not a file of yours" if stat.S_ISREG(status.st_mode) else "not a regular file")


def unreadable(path: Path, reason: str) -> UserError:
    """The error for a session file that cannot be used."""
    return UserError(f"cannot read session `{path}`: {reason}")


def _below(home: str, directory: str, depth: int, ending: str = "", thread_id: str = "") -> Iterator[str]:
    try:
        with os.scandir(f"{home}/{directory}") as entries:
            if depth:
                names = [e.name for e in entries if re.fullmatch(_DATE, e.name) and e.is_dir(follow_symlinks=False)]
            else:
                names = [e.name for e in entries if thread_id in e.name and _is_rollout(e.name, ending)]
    except OSError:
        return
    for name in sorted(names, reverse=True):
        if depth:
            yield from _below(home, f"{directory}/{name}", depth - 1, ending, thread_id)
        else:
            yield f"{directory}/{name}"


def _is_rollout(name: str, ending: str) -> bool:
    return name.endswith(ending) and re.fullmatch(_NAME, name.removesuffix(ending)) is not None


_LOCKS_DATE: Final = "thread-writer-locks"
_COORDINATION: Final = ".coordination.lock"
_TRIES: Final = 8
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


def active_writer(thread_id: str) -> UserError:
    """The error for a session that another process writes to."""
    return UserError(
        f"session `{thread_id}` already has an active writer", hint="close the other program, or start a new session"
    )


class ThreadLock:
    """The lock that Codex CLI looks for. Where it cannot be created, as in a read-only directory, nothing is locked."""

    def __init__(self, home: Path, thread_id: str) -> None:
        """Take the lock; raise `UserError` when another process has it."""
        self._path = home / _LOCKS_DATE / f"{thread_id}.lock"
        self._descriptor: int | None = None
        for _ in range(_TRIES):
            try:
                make_private_dir(self._path.parent)
                descriptor = open_private(self._path, _FLAGS)
            except OSError:
                return
            if not lock(descriptor):
                os.close(descriptor)
                raise active_writer(thread_id)
            if self._is_at_its_path(descriptor):
                self._descriptor = descriptor
                return
            # Its last holder has removed the file, so this lock keeps nobody out.
            os.close(descriptor)

    def release(self) -> None:
        """Let others write. Safe to call more than once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with suppress(OSError):
            coordination = open_private(self._path.with_name(_COORDINATION), _FLAGS)
            # With this lock no process is between opening the file and locking it; a file that stays does no harm.
            if lock(coordination):
                self._path.unlink(missing_ok=True)
            os.close(coordination)
        os.close(descriptor)

    def _is_at_its_path(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.lstat())
        except OSError:
            return False

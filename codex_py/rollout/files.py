"""Where rollout files are, and which of them may be opened at all.

Sessions can come from elsewhere: only regular files of the user that lie below the sessions folder itself are read,
so links, FIFOs, devices and other people's files are left alone.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_py.errors import UserError

ARCHIVE: Final = "archived_sessions"

_DIRECTORY = re.compile(r"\d{2,4}")
_NAME = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T\d\d-\d\d-\d\d-([0-9a-f-]{36})\.jsonl")
# How newer versions of Codex CLI put old sessions away.
_COMPRESSED = ".zst"


def session_files(home: Path) -> Iterator[Path]:
    """The rollout files below `sessions/`, the newest name first. Folders that are links are not entered."""
    return map(home.__truediv__, session_names(home))


def archived_files(home: Path) -> Iterator[Path]:
    """The rollout files of archived sessions, the newest name first."""
    return map(home.__truediv__, session_names(home, archived=True))


def session_names(home: Path, *, archived: bool = False) -> Iterator[str]:
    """The same as texts, relative to `home`: to make a path of each takes longer than to look at the file."""
    return _below(str(home), ARCHIVE, 0) if archived else _below(str(home), "sessions", 3)


def compressed_files(home: Path) -> Iterator[Path]:
    """The rollout files that Codex CLI has compressed, which this program does not read, archived ones too."""
    for name in (*_below(str(home), "sessions", 3, _COMPRESSED), *_below(str(home), ARCHIVE, 0, _COMPRESSED)):
        yield home / name


def thread_of(path: Path) -> str:
    """The thread id in a rollout file's name, or an empty text."""
    match = _NAME.fullmatch(path.name.removesuffix(_COMPRESSED))
    return match[4] if match else ""


def is_archived(path: Path) -> bool:
    """Whether a rollout file lies among the archived ones."""
    return path.parent.name == ARCHIVE


def active_path(home: Path, path: Path) -> Path:
    """Where a rollout file of this name belongs while its session is not archived."""
    match = _NAME.fullmatch(path.name)
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
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    raise unreadable(path, "not a file of yours" if stat.S_ISREG(status.st_mode) else "not a regular file")


def unreadable(path: Path, reason: str) -> UserError:
    """The error for a file that holds no session one could go on with."""
    return UserError(f"cannot read session `{path}`: {reason}")


def os_reason(error: OSError) -> str:
    """What the system says about a failure, in our tone."""
    if error.errno == errno.ELOOP:
        return "not a regular file"
    return (error.strerror or "unknown error").lower()


def _below(home: str, directory: str, depth: int, ending: str = "") -> Iterator[str]:
    try:
        with os.scandir(f"{home}/{directory}") as entries:
            if depth:
                names = [e.name for e in entries if _DIRECTORY.fullmatch(e.name) and e.is_dir(follow_symlinks=False)]
            else:
                names = [e.name for e in entries if _is_rollout(e.name, ending)]
    except OSError:
        return
    for name in sorted(names, reverse=True):
        if depth:
            yield from _below(home, f"{directory}/{name}", depth - 1, ending)
        else:
            yield f"{directory}/{name}"


def _is_rollout(name: str, ending: str) -> bool:
    return name.endswith(ending) and _NAME.fullmatch(name.removesuffix(ending)) is not None

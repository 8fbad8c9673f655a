"""Files as a patch sees them: found once, then reached from `/` without following a single link.

A path is resolved when it is planned. From then on the walk opens one directory after the other with `O_NOFOLLOW`, so a
link that appears in between makes the patch fail instead of leading it elsewhere.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from codex_py.paths import opened_directory, real_path

MAX_FILE_BYTES: Final = 64 * 1024 * 1024

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Identity = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class FileState:
    """A directory entry when it was looked at. `content` is None for all but regular files, and for large ones."""

    content: bytes | None
    regular: bool
    mode: int
    owner: tuple[int, int]
    links: int
    identity: Identity


def resolve_entry(path: Path) -> Path:
    """The directory entry a path names: the links of its directories are followed, a link at its end is not."""
    return Path(real_path(path.parent)) / path.name


def resolve_file(path: Path) -> Path:
    """The file a path leads to, which need not exist; a loop of links gives a path that does not open."""
    return Path(real_path(path))


def look_at(path: Path, *, limit: int = MAX_FILE_BYTES) -> FileState | None:
    """The state of a directory entry, None when there is none; the content of a regular file up to `limit` bytes.

    Raise `OSError`, `IsADirectoryError` for a directory among them.
    """
    try:
        with opened_directory(path.parent) as directory:
            found = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(path)
            if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
                return _state(found, None)
            return _read(path.name, directory, limit)
    except FileNotFoundError:
        return None


def identity_of(found: os.stat_result) -> Identity:
    """A value that changes when a file is replaced or rewritten."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _read(name: str, directory: int, limit: int) -> FileState:
    with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb") as file:
        found = os.fstat(file.fileno())
        content = file.read(limit + 1) if stat.S_ISREG(found.st_mode) else None
        return _state(found, None if content is None or len(content) > limit else content)


def _state(found: os.stat_result, content: bytes | None) -> FileState:
    return FileState(
        content=content,
        regular=stat.S_ISREG(found.st_mode),
        mode=stat.S_IMODE(found.st_mode),
        owner=(found.st_uid, found.st_gid),
        links=found.st_nlink,
        identity=identity_of(found),
    )

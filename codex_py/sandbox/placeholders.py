"""What a sandbox keeps on the host: empty files to mount over, and hold of protected paths that move.

A mount protects `sub/.git` during one command, but not the name `sub`: a command may rename that, and the next one
would find `.git` where nobody looks. So each is held open, and the kernel tells where it is now.

Several commands, of several processes, may need the same one at once: each holds a shared lock on it, and the last to
let go removes it. One that a killed process left is known by its mode and goes with the next command.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import PLACEHOLDER_FILE_MODE, PLACEHOLDER_MODE, is_placeholder

_O_PATH: Final = getattr(os, "O_PATH", 0)
_DELETED: Final = " (deleted)"


class Pins:
    """Paths held open for as long as this object lives; nothing is held where the system cannot tell names (macOS)."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._fds: list[int] = []
        self._held: set[tuple[int, int]] = set()
        self.add(paths)

    def add(self, paths: Iterable[Path]) -> None:
        """Hold these as well, each once."""
        if not _O_PATH:
            return
        for path in paths:
            try:
                status = os.lstat(path)
                if (status.st_dev, status.st_ino) in self._held:
                    continue
                fd = os.open(path, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # missing ones are protected by name
            status = os.fstat(fd)
            self._held.add((status.st_dev, status.st_ino))
            self._fds.append(fd)

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def paths(self) -> list[Path]:
        """Where those that still exist are now."""
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in self._fds]  # noqa: PTH115 - a name, not a path to follow
        return [Path(link) for link in links if link.startswith("/") and not link.endswith(_DELETED)]


_ATTEMPTS: Final = 50
# Where a file system refuses, nobody else can make anything either.
_IMPOSSIBLE: Final = (errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EROFS, errno.ENAMETOOLONG)


class Placeholders:
    """The placeholders one command holds."""

    def __init__(self) -> None:
        self._held: list[tuple[Path, int]] = []

    def hold(self, path: Path, *, is_file: bool = False) -> bool:
        """Make it, or share one that is there; false when nobody of this user could make it, sandbox or not."""
        for _ in range(_ATTEMPTS):
            if not _make(path, is_file=is_file):
                return False
            with suppress(FileNotFoundError):
                fd = _open(path, is_file=is_file)
                fcntl.flock(fd, fcntl.LOCK_SH)
                if _is_same(fd, path):
                    self._held.append((path, fd))
                    return True
                os.close(fd)  # the one before us removed it between our two calls
        raise OSError(errno.EAGAIN, "cannot hold", str(path))

    def release(self) -> None:
        """Let go of all, and remove those nobody else holds and nobody has put anything into."""
        held, self._held = self._held, []
        for path, fd in held:
            with suppress(OSError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_same(fd, path):
                    _remove(path)
            os.close(fd)


def hold_all(directories: Iterable[Path], files: Iterable[Path] = ()) -> tuple[Placeholders, list[Path]]:
    """Hold every one of these that can be held; give back which."""
    holder = Placeholders()
    try:
        held = [path for path in directories if holder.hold(path)]
        return holder, [*held, *(path for path in files if holder.hold(path, is_file=True))]
    except BaseException:
        holder.release()
        raise


def _make(path: Path, *, is_file: bool) -> bool:
    """Whether it stands now; false when it never can."""
    try:
        if is_file:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, PLACEHOLDER_FILE_MODE))
        else:
            path.mkdir(mode=PLACEHOLDER_MODE)
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno in _IMPOSSIBLE:
            return False
        raise
    return True


def _open(path: Path, *, is_file: bool) -> int:
    flag = os.O_NONBLOCK if is_file else os.O_DIRECTORY
    try:
        return os.open(path, os.O_RDONLY | flag | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:  # made under a umask that takes even reading from its owner
        with suppress(OSError):
            _remove(path)
        raise


def _remove(path: Path) -> None:
    if not os.path.isfile(path):  # noqa: PTH113
        path.rmdir()
    elif is_placeholder(path):
        path.unlink()


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False

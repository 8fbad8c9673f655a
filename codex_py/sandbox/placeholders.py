"""Empty folders that stand on the host where a sandbox mounts something over a path that is missing.

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

from codex_py.paths import PLACEHOLDER_MODE

_ATTEMPTS: Final = 50


class Placeholders:
    """The placeholders one command holds."""

    def __init__(self) -> None:
        self._held: list[tuple[Path, int]] = []

    def hold(self, path: Path) -> bool:
        """Make the folder, or share one that is there; false when nobody of this user could make it, sandbox or not."""
        for _ in range(_ATTEMPTS):
            if not _make(path):
                return False
            with suppress(FileNotFoundError):
                fd = _open(path)
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
                    path.rmdir()
            os.close(fd)


def hold_all(paths: Iterable[Path]) -> tuple[Placeholders, list[Path]]:
    """Hold every one of `paths` that can be held; give back which."""
    holder = Placeholders()
    try:
        return holder, [path for path in paths if holder.hold(path)]
    except BaseException:
        holder.release()
        raise


def _make(path: Path) -> bool:
    """Whether it stands now; false when it never can."""
    try:
        path.mkdir(mode=PLACEHOLDER_MODE)
    except FileExistsError:
        return True
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.EROFS:
            return False
        raise
    return True


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except PermissionError:  # made under a umask that takes even reading from its owner
        with suppress(OSError):
            path.rmdir()
        raise


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False

"""Empty folders that stand on the host where a sandbox mounts something over a path that is missing.

Several commands, of several processes, may need the same one at once: each holds a shared lock on it, and the last to
let go removes it. One that a killed process left is known by its time stamp and goes with the next command.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import PLACEHOLDER_STAMP

_ATTEMPTS: Final = 50


class Placeholders:
    """The placeholders one command holds."""

    def __init__(self) -> None:
        self._held: list[tuple[Path, int]] = []

    def hold(self, path: Path) -> bool:
        """Make the folder, or share one that is there; false when nobody of this user could make it, sandbox or not."""
        for _ in range(_ATTEMPTS):
            made = _make(path)
            if made is None:
                return False
            with suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                fcntl.flock(fd, fcntl.LOCK_SH)
                if _is_same(fd, path):
                    if made:
                        os.utime(fd, (PLACEHOLDER_STAMP, PLACEHOLDER_STAMP))
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


def _make(path: Path) -> bool | None:
    """True when made now, false when it was there, None when it can never be."""
    try:
        path.mkdir(mode=0o755)
    except FileExistsError:
        return False
    except (PermissionError, FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.EROFS:
            return None
        raise
    return True


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False

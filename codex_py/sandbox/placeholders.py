"""What a sandbox keeps on the host: empty files to mount over, and hold of protected paths that move.

A mount protects `sub/.git` during one command, but not the name `sub`: a command may rename that, and the next one
would find `.git` where nobody looks. So each is held open, and the kernel tells where it is now.

Several commands, of several processes, may need the same one at once: each holds a shared lock on it, and the last to
let go removes it. One that a killed process left is known by its mode and goes with the next command that needs it, or
with the next command of any session: each process lists where it puts them.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import (
    PLACEHOLDER_FILE_MODE,
    PLACEHOLDER_MODE,
    is_file,
    is_placeholder,
    lock,
    make_private_dir,
    open_private,
)

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
                if _is_same(fd, path) and is_placeholder(path):
                    _remove(path)
            os.close(fd)


class PlaceholderList:
    """Where this process has put placeholders: a file in a private `directory`, locked for as long as it lives."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._listed: set[Path] = set()
        self._file: Path | None = None
        self._fd = -1

    def __del__(self) -> None:
        if self._fd >= 0:
            if self._file is not None and not any(map(is_placeholder, self._listed)):
                with suppress(OSError):
                    self._file.unlink()
            os.close(self._fd)

    def add(self, paths: Iterable[Path]) -> None:
        """List these before something is put there. Where that is impossible, they are not listed."""
        new = {path for path in paths if path not in self._listed}
        if not new:
            return
        with suppress(OSError):
            if self._fd < 0:
                self._open()
            # At once, because this process may be killed at any moment.
            os.write(self._fd, b"".join(os.fsencode(path) + b"\0" for path in new))
            self._listed |= new

    def sweep(self) -> None:
        """Remove the placeholders of processes that have ended without doing so."""
        with suppress(OSError), os.scandir(self._directory) as listing:
            for entry in listing:
                if self._file is None or entry.name != self._file.name:
                    _sweep(Path(entry.path))

    def _open(self) -> None:
        make_private_dir(self._directory)
        for _ in range(_ATTEMPTS):
            path = self._directory / f"{os.getpid()}-{os.urandom(4).hex()}"
            fd = open_private(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
            if lock(fd) and _is_same(fd, path):
                self._file, self._fd = path, fd
                return
            os.close(fd)  # another process swept it before it was locked


def _sweep(file: Path) -> None:
    """Remove what a list names and nobody holds, and the list; nothing when the process that wrote it lives."""
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not lock(fd):
            return
        for name in file.read_bytes().split(b"\0")[:-1]:
            path = Path(os.fsdecode(name))
            if is_placeholder(path):
                with suppress(OSError):
                    holder = Placeholders()
                    holder.hold(path, is_file=is_file(path))
                    holder.release()
        file.unlink()
    finally:
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
    if not is_file(path):
        path.rmdir()
    elif is_placeholder(path):
        path.unlink()


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False

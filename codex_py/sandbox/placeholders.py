"""What a sandbox keeps on the host: placeholders for missing paths, and hold of protected paths that move.

A mount needs something to be mounted on, so an empty directory or file stands where a path must not be made. It stays
from the first command of a session to the end of the session: what comes and goes with every command disturbs programs
that watch the directory. In temporary directories it goes with the command: there it disturbs programs that have
nothing to do with the session (`go build` fails below an empty `.git` unless a variable is set). Sessions
share it: each holds a lock on it, and the last one removes it, unless the user has put something into it. Each process
lists where it puts them, so that the next session removes what a killed one left.

A mount protects `sub/.git` during one command, but not the name `sub`: a command may rename that, and the next one
would find `.git` at an unprotected path. So protected paths are held open, and the kernel tells where they are now.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.paths import (
    PLACEHOLDER_FILE_MODE,
    PLACEHOLDER_MODE,
    is_directory,
    is_lasting,
    is_placeholder,
    lock,
    make_private_dir,
    open_private,
    placeholder_text,
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
    """The placeholders of one sandbox, which stay as long as it has users: sessions, and commands that run.

    `lists` is the private directory in which every process lists where it has put some; none is kept without.
    """

    def __init__(self, lists: Path | None = None) -> None:
        self._lists = lists
        self._list: tuple[Path, int] | None = None
        self._listed: set[Path] = set()
        self._held: dict[Path, tuple[int, os.stat_result]] = {}
        self._brief: set[Path] = set()
        self._commands: set[object] = set()
        self._sessions: set[object] = set()
        self._lock = threading.Lock()

    def join(self, *, session: bool = False) -> Callable[[], None]:
        """Count one more user; what is given back counts it no longer, however often it is called.

        With the last user goes all that nobody else holds and nobody has put anything into, and with the last command
        what was only to be held briefly.
        """
        user = object()
        with self._lock:
            (self._sessions if session else self._commands).add(user)
        return partial(self._leave, user)

    def _leave(self, user: object) -> None:
        with self._lock:
            self._commands.discard(user)
            self._sessions.discard(user)
            if self._commands:
                return
            for path in self._held.keys() & self._brief if self._sessions else list(self._held):
                _remove(path, self._held.pop(path)[0])
            if self._sessions:
                return
            self._listed.clear()
            if self._list is not None:
                (file, fd), self._list = self._list, None
                with suppress(OSError):
                    file.unlink()
                os.close(fd)

    def hold(
        self, directories: Iterable[Path], files: Iterable[Path] = (), *, briefly: Iterable[Path] = ()
    ) -> Collection[Path]:
        """Make those that are missing and share those of others; give back all that stand now.

        Those of `briefly` stand for as long as commands run. Left out is what nobody of this user can make, sandbox or
        not. For users that have joined. Raises `OSError`.
        """
        with self._lock:
            self._brief.update(briefly)
            missing = [(path, False) for path in directories if not self._stands(path)]
            missing += [(path, True) for path in files if not self._stands(path)]
            if missing:
                self._note(path for path, _ in missing)
            for path, is_file in missing:
                self._hold(path, is_file=is_file)
            return self._held.keys()

    def _stands(self, path: Path) -> bool:
        """Whether it is held and still there; who has removed it gets another one."""
        held = self._held.get(path)
        if held is None:
            return False
        with suppress(OSError):
            if os.path.samestat(held[1], os.lstat(path)):
                return True
        os.close(self._held.pop(path)[0])
        return False

    def _hold(self, path: Path, *, is_file: bool) -> None:
        flag = os.O_NONBLOCK if is_file else os.O_DIRECTORY
        for _ in range(_ATTEMPTS):
            if not _make(path, is_file=is_file):
                return
            with suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDONLY | flag | os.O_NOFOLLOW | os.O_CLOEXEC)
                fcntl.flock(fd, fcntl.LOCK_SH)
                if _is_same(fd, path):
                    self._held[path] = fd, os.fstat(fd)
                    return
                os.close(fd)  # another process removed it between our two calls
        raise OSError(errno.EAGAIN, "cannot hold", str(path))

    def _note(self, paths: Iterable[Path]) -> None:
        """List these before something is put there, where that is possible; first remove what killed processes left."""
        if self._lists is None:
            return
        with suppress(OSError):
            if self._list is None:
                make_private_dir(self._lists)
                for file in self._lists.iterdir():
                    with suppress(OSError):
                        _sweep_list(file)
                self._list = _open_list(self._lists)
            new = [path for path in paths if path not in self._listed]
            self._listed.update(new)
            os.write(self._list[1], b"".join(os.fsencode(path) + b"\0" for path in new))


def go_variables(held: Set[Path], cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    """What keeps `go build` from asking git about a placeholder, which it takes for a repository: empty elsewhere."""
    found = [path for directory in (cwd, *cwd.parents) if os.path.lexists(path := directory / ".git")]
    # Another session may have put one above.
    if held.isdisjoint(found) or any(map(is_lasting, found)):
        return {}
    flags = env["GOFLAGS"] if "GOFLAGS" in env else _stored_go_flags(env)
    return {} if "-buildvcs" in flags else {"GOFLAGS": f"{flags} -buildvcs=false".strip()}


def _stored_go_flags(env: Mapping[str, str]) -> str:
    """The flags that `go env -w` has written, which the variable would replace."""
    directory = env.get("XDG_CONFIG_HOME") or f"{env.get('HOME', '')}/.config"
    with suppress(OSError, ValueError):
        lines = Path(env.get("GOENV") or f"{directory}/go/env").read_text("utf-8").splitlines()
        return next((line.removeprefix("GOFLAGS=") for line in lines if line.startswith("GOFLAGS=")), "")
    return ""


def _open_list(lists: Path) -> tuple[Path, int]:
    """A new list, locked for as long as the process lives."""
    for _ in range(_ATTEMPTS):
        path = lists / f"{os.getpid()}-{os.urandom(4).hex()}"
        fd = open_private(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND)
        if lock(fd) and _is_same(fd, path):
            return path, fd
        os.close(fd)  # another process swept it before it was locked
    raise OSError(errno.EAGAIN, "cannot lock", str(lists))


def _sweep_list(file: Path) -> None:
    """Remove what a list names and nobody holds, and the list; nothing when the process that wrote it lives."""
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not lock(fd):
            return
        for name in file.read_bytes().split(b"\0")[:-1]:
            path = Path(os.fsdecode(name))
            with suppress(OSError):
                if is_placeholder(path):
                    _remove(path, os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC))
        file.unlink()
    finally:
        os.close(fd)


def _make(path: Path, *, is_file: bool) -> bool:
    """Whether it stands now; false when it never can."""
    mode = PLACEHOLDER_FILE_MODE if is_file else PLACEHOLDER_MODE
    try:
        if is_file:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
            try:
                os.write(fd, placeholder_text(path.name))
            finally:
                os.close(fd)
        else:
            path.mkdir(mode=mode)
        path.chmod(mode)  # whatever the umask is, so that sessions of other users can hold it too
    except FileExistsError:
        return True
    except OSError as error:
        if error.errno in _IMPOSSIBLE:
            return False
        raise
    return True


def _remove(path: Path, fd: int) -> None:
    """Remove a placeholder that nobody else holds, if it still is one, and close it."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(fd, path) and is_placeholder(path):
            path.rmdir() if is_directory(path) else path.unlink()
    os.close(fd)


def _is_same(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False

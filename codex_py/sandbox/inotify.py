"""Watches directories for changes: one instance of the kernel's inotify a process, read by one thread."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF, _MASK_ADD = 0x100, 0x200, 0x400, 0x800, 0x20000000
_NAMES: Final = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_CONTENT: Final = _NAMES | _MODIFY | _ATTRIB | _CLOSE_WRITE
_OVERFLOW: Final = -1
_HEADER: Final = struct.Struct("iIII")
_READ_BYTES: Final = 1 << 16
# How often directories are looked at that the kernel cannot watch: a user has 128 instances, and a number of watches.
_POLL_SECONDS: Final = 0.02
# A directory that is exchanged again and again is looked at again by its next event.
_ATTEMPTS: Final = 5


class Watched(NamedTuple):
    """Paths to watch: of the directories in `names`, which entries there are; of those in `content` everything."""

    names: Sequence[str]
    content: Sequence[str]


# Looks at the disk, and says what to watch for the next change.
Look = Callable[[], Watched]


class _Inotify:
    """One instance. Raises `OSError` where the kernel gives none."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._check(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def add(self, path: str, mask: int) -> int:
        """The number of the watch on a path, links followed: the same for the same file. Raises `OSError`."""
        return self._check(self._libc.inotify_add_watch(self.fd, os.fsencode(path), mask | _MASK_ADD))

    def read(self) -> Iterable[int]:
        """The numbers of the watches with events."""
        found: set[int] = set()
        try:
            content = os.read(self.fd, _READ_BYTES)
        except BlockingIOError:
            return found
        start = 0
        while start < len(content):
            number, _, _, length = _HEADER.unpack_from(content, start)
            found.add(number)
            start += _HEADER.size + length
        return found

    @staticmethod
    def _check(answer: int) -> int:
        if answer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answer


class DirectoryWatcher:
    """Looks again after each change of what a look said to watch, for as long as anything is watched.

    Looks are called one at a time, from the thread or from who begins to watch.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._looks: dict[object, tuple[Sequence[Look], Callable[[], None]]] = {}
        self._inotify: _Inotify | None = None
        self._wake: int | None = None
        self._watches: dict[int, set[Look]] = {}
        self._polled: set[Look] = set()

    def watch(self, looks: Sequence[Look], after: Callable[[], None]) -> Callable[[], None]:
        """Look now, and after each change until what is given back is called. `after` is called by the thread when it
        has looked, and may take its time."""
        token = object()
        with self._lock:
            self._looks[token] = looks, after
            wake = self._start() if self._wake is None else self._wake
            for look in looks:
                self._arm(look)
            if self._polled:
                os.eventfd_write(wake, 1)

        def end() -> None:
            with self._lock:
                del self._looks[token]
                self._polled.difference_update(looks)
                for watching in self._watches.values():
                    watching.difference_update(looks)
                if not self._looks and self._wake is not None:
                    os.eventfd_write(self._wake, 1)
                    self._wake = self._inotify = None
                    self._watches = {}

        return end

    def _start(self) -> int:
        self._wake = wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._inotify = _Inotify()
        except OSError:
            self._inotify = None
        threading.Thread(target=self._run, args=(self._inotify, wake), daemon=True).start()
        return wake

    def _run(self, inotify: _Inotify | None, wake: int) -> None:
        poll = select.poll()
        for fd in (wake, *([inotify.fd] if inotify else [])):
            poll.register(fd, select.POLLIN)
        while True:
            poll.poll(_POLL_SECONDS * 1000 if self._polled else None)
            with self._lock:
                if self._wake != wake:
                    break
                os.eventfd_write(wake, 1)
                os.eventfd_read(wake)
                for look in self._changed(inotify.read() if inotify else ()):
                    self._arm(look)
                afters = [after for _, after in self._looks.values()]
            for after in afters:
                after()
        os.close(wake)
        if inotify:
            os.close(inotify.fd)

    def _changed(self, numbers: Iterable[int]) -> set[Look]:
        every = {look for looks, _ in self._looks.values() for look in looks}
        if _OVERFLOW in numbers:
            return every
        return every.intersection(self._polled.union(*(self._watches.get(number, ()) for number in numbers)))

    def _arm(self, look: Look) -> None:
        """Look, and once more as long as there is something new to watch: it may have changed before it was watched."""
        for _ in range(_ATTEMPTS):
            names, content = look()
            if self._inotify is None:
                self._polled.add(look)
                return
            added = [self._add(look, path, _NAMES) for path in names]
            added += [self._add(look, path, _CONTENT) for path in content]
            if not any(added):
                return

    def _add(self, look: Look, path: str, mask: int) -> bool:
        """Whether a look watches a path that it did not watch before."""
        if self._inotify is None:
            return False
        try:
            watching = self._watches.setdefault(self._inotify.add(path, mask), set())
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.ENOMEM):
                self._polled.add(look)
            return False
        is_new = look not in watching
        watching.add(look)
        return is_new


@lru_cache(maxsize=1)
def shared_watcher() -> DirectoryWatcher:
    """The watcher of this process: all its sessions share one instance of the kernel's."""
    return DirectoryWatcher()

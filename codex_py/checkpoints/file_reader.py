"""Reading the files of a directory: each is stored once, by content, and recognised by size and times the next time.

Files over the limits are only recorded as existing and cannot be restored.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Generator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final, NamedTuple

from codex_py.checkpoints.entries import LINK_MODE, Entry, ParentDirectories, changed_at, is_ordinary, open_root
from codex_py.checkpoints.store import CheckpointStore
from codex_py.services.git import GitReader

# A file that changed so shortly before it was read may change again without a change of its times.
_RACY_NANOSECONDS: Final = 50_000_000
_MANY_FILES: Final = 2000
# The mark of a file that was changed before it could be looked at.
OVERTAKEN: Final = b"overtaken"


class Caps(NamedTuple):
    """The limits on what is stored of one directory: number of files, bytes together, and bytes of one file."""

    files: int
    bytes: int
    file_bytes: int


class Stopped(Exception):
    """The snapshot is not needed any more."""


class SnapshotRun:
    """How long a snapshot is waited for: shared by the thread that takes it and the turn that waits."""

    def __init__(self) -> None:
        self.is_large = False
        """Whether there is so much to look at that nobody should wait for all of it."""
        self.opened: int | None = None
        """Since when files may have been written, though not all were looked at; nanoseconds of their file system."""
        self.git: GitReader | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Let the snapshot end soon, with `Stopped`."""
        self._is_stopped = True
        if self.git is not None:
            self.git.stop()

    def check(self) -> None:
        """Raise `Stopped` after `stop`."""
        if self._is_stopped:
            raise Stopped

    def is_overtaken(self, changed: int) -> bool:
        """Whether what was changed then is not what it was when the snapshot was asked for."""
        return self.opened is not None and changed >= self.opened


class FileReader:
    """Stores the files of one directory within its caps, and remembers which it has stored.

    Use `within` for each directory; it names the directory and keeps it open.
    """

    def __init__(self, store: CheckpointStore, seen: dict[str, Any], caps: Caps, run: SnapshotRun) -> None:
        self._store = store
        self._seen = seen
        self._caps = caps
        self._run = run
        self._root = self._what = ""
        self._parents: ParentDirectories | None = None
        self._files = self._bytes = 0
        self.is_over = False
        self._uncovered: list[str] = []

    @contextmanager
    def within(self, root: str, *, top: str = "", what: str = "") -> Generator[None, None, None]:
        """Read files of a directory; they have caps of their own if `what` says what they are, and none otherwise.

        Raises `OSError` as `open_root` does.
        """
        self._root = root
        self._what = what
        self._files = self._bytes = 0
        self.is_over = False
        self._uncovered = []
        descriptor = open_root(os.fsencode(root), os.fsencode(top))
        self._parents = ParentDirectories(descriptor)
        try:
            yield
        finally:
            self._parents.close()
            os.close(descriptor)

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The files that are not stored, as parts of a sentence. Those over the caps are one of them."""
        if not self.is_over:
            return tuple(self._uncovered)
        most = f"{self._caps.files:,} {self._what} or {self._caps.bytes >> 20:,} MiB of them"
        return (f"more than {most} in `{self._root}`", *self._uncovered)

    def in_order(self, paths: Collection[bytes]) -> Collection[bytes]:
        """The paths of files in the order to read them in: of too many, those that are stored already come first."""
        if len(paths) <= self._caps.files:
            return paths
        # One string is decoded many times faster than its parts.
        names = os.fsdecode(b"\0".join(paths)).split("\0")
        is_new = [f"{self._root}/{name}" not in self._seen for name in names]
        return [path for path, _ in sorted(zip(paths, is_new, strict=True), key=itemgetter(1))]

    def read(self, path: bytes) -> Entry | None:
        """The state of a file, its content stored; None when nothing is there that is stored."""
        if self._parents is None:
            return None
        self._run.check()
        unreadable = Entry(stat.S_IFREG, mark=b"unreadable")
        try:
            directory, name = self._parents.of(path)
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if not is_ordinary(status.st_mode):
                return None
            unreadable = Entry(status.st_mode, mark=_mark(status))
            if self._run.is_overtaken(status.st_ctime_ns):
                self._uncovered.append(f"`{os.fsdecode(path)}` (changed before it was on record)")
                return Entry(status.st_mode, mark=OVERTAKEN)
            return self._stored(directory, name, status, path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            # A link on the way, or a file that cannot be read or stored: it is there, and stays as it is.
            self._uncovered.append(f"`{os.fsdecode(path)}` ({(error.strerror or str(error)).lower()})")
            return unreadable

    def may_have_been_there(self, path: bytes) -> bool:
        """Whether a file that is not there may have been there when the snapshot was asked for."""
        return self._run.is_overtaken(changed_at(f"{self._root}/{os.fsdecode(path)}"))

    def _stored(self, directory: int, name: bytes, status: os.stat_result, path: bytes) -> Entry:
        mark = _mark(status)
        is_large = status.st_size > self._caps.file_bytes
        is_over = self._files >= self._caps.files or self._bytes + status.st_size > self._caps.bytes
        if self._what and (is_large or is_over):
            if is_large:
                self._uncovered.append(f"`{self._root}/{os.fsdecode(path)}` (too large)")
            self.is_over = self.is_over or not is_large
            return Entry(status.st_mode, mark=mark)
        self._files += 1
        self._run.is_large = self._run.is_large or self._files > _MANY_FILES
        self._bytes += status.st_size
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return Entry(LINK_MODE, git_hash(target), self._store.put(target).encode(), mark)
        where = f"{self._root}/{os.fsdecode(path)}"
        signature = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        known = self._seen.get(where)
        if known is not None and known[0] == signature and self._store.has(known[1]):
            return Entry(status.st_mode, known[2].encode(), known[1].encode(), mark)
        content = _read_file(directory, name, status.st_size)
        stored, oid = self._store.put(content), git_hash(content)
        is_settled = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _RACY_NANOSECONDS
        self._seen[where] = [signature if is_settled else None, stored, oid.decode()]
        return Entry(status.st_mode, oid, stored.encode(), mark)


def _mark(status: os.stat_result) -> bytes:
    return b"%d-%d" % (status.st_size, status.st_mtime_ns)


def git_hash(content: bytes) -> bytes:
    """The name git has for a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()


def _read_file(directory: int, name: bytes, size: int) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    try:
        # Mostly one call reads all, and the next one says that there is no more.
        content = os.read(descriptor, size + 1)
        while more := os.read(descriptor, 1 << 20):
            content += more
        return content
    finally:
        os.close(descriptor)

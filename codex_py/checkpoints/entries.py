"""The entry of one file in a snapshot, and the stored form of lists of entries."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# What a rewind writes into before it takes the name of a file; one that was killed may leave such files behind.
DRAFT_PREFIX: Final = b".codex-py-rewind-"
LINK_MODE: Final = 0o120777
_FEW: Final = 64
# The full modes of files that git has written, by the modes in its index.
GIT_MODES: Final = {b"100644": 0o100644, b"100755": 0o100755, b"120000": LINK_MODE}


class Entry(NamedTuple):
    """One file or link: its full mode and where its content is.

    `oid` is the name git has for the content, `stored` that of the store; either may be empty. With neither the file
    is only known to be there. `mark` tells two states apart where one of them has neither; it may be empty too.
    """

    mode: int
    oid: bytes = b""
    stored: bytes = b""
    mark: bytes = b""

    @property
    def is_covered(self) -> bool:
        """Whether the content can be brought back."""
        return bool(self.oid or self.stored)


# Paths below a root, as bytes with slashes; None for a file that is known not to be there.
Entries: TypeAlias = Mapping[bytes, Entry | None]


def is_same(first: Entry | None, second: Entry | None) -> bool:
    """Whether two states of a file are the same, content and mode."""
    if first is None or second is None:
        return first is second
    if first.mode != second.mode:
        return False
    if first.stored and second.stored:
        return first.stored == second.stored
    if first.oid and second.oid:
        return first.oid == second.oid
    if first.mark and second.mark:
        return first.mark == second.mark
    return first == second


def encode_entries(entries: Entries) -> bytes:
    """A list of files as bytes, sorted, so that equal lists are equal bytes."""
    return b"".join(
        b"0 - - -\t%b\0" % path
        if entry is None
        else b"%o %b %b %b\t%b\0" % (entry.mode, entry.oid or b"-", entry.stored or b"-", entry.mark or b"-", path)
        for path, entry in sorted(entries.items())
    )


def decode_entries(raw: bytes, only: Collection[bytes] | None = None) -> dict[bytes, Entry | None]:
    """Read `encode_entries` back, or the output of `git ls-files -s -v -z`; with `only` no other paths.

    Of git's index submodules are left out, and files whose state git is told not to look at.
    """
    found: dict[bytes, Entry | None] = {}
    for head, path in _lines(raw, only):
        mode, oid, stored, mark = (b"" if field == b"-" else field for field in head.split(b" "))
        if mode.isalpha():
            if mode == b"H" and oid in GIT_MODES:
                found[path] = Entry(GIT_MODES[oid], stored)
        else:
            found[path] = Entry(int(mode, 8), oid, stored, mark) if mode != b"0" else None
    return found


def _lines(raw: bytes, only: Collection[bytes] | None) -> Iterator[tuple[bytes, bytes]]:
    """The heads and paths of a list of files. A few are searched for: to split a long list takes much memory."""
    if only is None or len(only) > _FEW:
        for line in raw.split(b"\0"):
            head, _, path = line.partition(b"\t")
            if head and (only is None or path in only):
                yield head, path
        return
    for path in only:
        at = -1
        while (at := raw.find(b"\t%b\0" % path, at + 1)) >= 0:
            head = raw[raw.rfind(b"\0", 0, at) + 1 : at]
            # The name of another file may end with a tab and this path.
            if b"\t" not in head:
                yield head, path
                break


def is_safe(path: bytes) -> bool:
    """Whether a path may be written: below its root, and no part of a repository's own files."""
    parts = path.split(b"/")
    return all(part and part not in (b".", b"..") and part.lower() != b".git" for part in parts) and b"\0" not in path


class ParentDirectories:
    """The directories of files below a root. The last one stays open, since files are read in the order of their paths.

    No link is followed. `root` stays open after `close`.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._path = b""
        self._last: int | None = None

    def of(self, path: bytes) -> tuple[int, bytes]:
        """The descriptor of a file's directory, and the name in it. Raises `OSError`, also for a link on the way."""
        parent, slash, name = path.rpartition(b"/")
        if not slash:
            return self._root, name
        if self._last is None or parent != self._path:
            self.close()
            with parent_directory(self._root, path) as (directory, _):
                self._last, self._path = os.dup(directory), parent
        return self._last, name

    def close(self) -> None:
        if self._last is not None:
            os.close(self._last)
            self._last = None


@contextmanager
def parent_directory(root: int, path: bytes, *, make: bool = False) -> Generator[tuple[int, bytes], None, None]:
    """The directory of a path below `root`, as a descriptor, and the name in it; no link is followed.

    With `make` missing directories are made. Raises `OSError`, also where a part of the path is a link.
    """
    *parts, name = path.split(b"/")
    directory = os.dup(root)
    try:
        for part in parts:
            try:
                inner = open_directory(part, directory)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(part, dir_fd=directory)
                inner = open_directory(part, directory)
            os.close(directory)
            directory = inner
        yield directory, name
    finally:
        os.close(directory)


def open_root(path: bytes, top: bytes = b"", *, make: bool = False) -> int:
    """A descriptor of the directory that a root is. Below `top`, which commands may write, no link is followed.

    With `make` missing directories below `top` are made. Raises `OSError`.
    """
    if not top or path == top:
        return os.open(path, _DIRECTORY)
    outer = os.open(top, _DIRECTORY)
    try:
        with parent_directory(outer, path[len(top) + 1 :], make=make) as (directory, name):
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=directory)
            return open_directory(name, directory)
    finally:
        os.close(outer)


def open_directory(name: bytes, directory: int) -> int:
    """A descriptor of a directory in another one; a link is not followed. Raises `OSError`."""
    return os.open(name, _DIRECTORY, dir_fd=directory)


def outermost(roots: Iterable[str], root: str) -> str:
    """The root that lies furthest up on the way to a directory; the directory itself where none does."""
    return min((path for path in roots if root == path or root.startswith(f"{path}/")), key=len, default=root)


def changed_at(path: str) -> int:
    """When a file was last changed; of one that is gone, when a name was last changed where it was."""
    try:
        return os.lstat(path).st_ctime_ns
    except OSError:
        directory = os.path.dirname(path)  # noqa: PTH120 - many, and `Path` is slow
        return changed_at(directory) if directory != path else 0


def is_ordinary(mode: int) -> bool:
    """Whether it is a file or a link; directories, sockets and devices are not stored."""
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

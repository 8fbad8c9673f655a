"""Where else protected files are: nested below directories that commands write, and behind hard links.

A directory is listed again only when its change time is another one, which no command can set.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from codex_py.protocol.value import Value
from codex_py.sandbox.git_directories import RUN_BY_GIT

# How many files are asked for further names, and how many entries of the directories are looked through for these.
_CHECKED_FILES: Final = 20_000
_SCANNED_ENTRIES: Final = 200_000
# What git keeps there it finds by its content, and it links it when it clones.
_CONTENT: Final = frozenset(("objects", "lfs"))


def other_names(protected: Iterable[Path], roots: Sequence[Path], unread: list[str]) -> list[Path]:
    """The paths below `roots` that are links to a file which is, or lies in, one of the `protected` paths.

    Nothing is looked through unless such a file has more than one name. Those inside the protected paths are among what
    is given back. For each directory that is too large a line is added to `unread`.
    """
    inodes = {(found.st_dev, found.st_ino) for found in _linked(protected, unread)}
    if not inodes:
        return []
    numbers = {number for _, number in inodes}
    return [
        Path(entry.path)
        for root in roots
        for entry in _below(str(root), _SCANNED_ENTRIES, unread)
        if entry.inode() in numbers and (found := _status(entry)) and (found.st_dev, found.st_ino) in inodes
    ]


def _linked(paths: Iterable[Path], unread: list[str]) -> Iterator[os.stat_result]:
    """The files with several names in protected places, which are files or directories themselves."""
    left = _CHECKED_FILES
    for path in paths:
        try:
            own = os.lstat(path)
        except OSError:
            continue
        found = [own] if stat.S_ISREG(own.st_mode) else []
        if stat.S_ISDIR(own.st_mode):
            below = list(_below(str(path), left, unread))
            left -= len(below)
            found = [status for entry in below if (status := _status(entry))]
        yield from (status for status in found if stat.S_ISREG(status.st_mode) and status.st_nlink > 1)


def _below(top: str, most: int, unread: list[str]) -> Iterator[os.DirEntry[str]]:
    """Everything below a directory, breadth first, at most `most` entries; links are not followed."""
    directories = deque([top])
    seen = 0
    while directories:
        try:
            with os.scandir(directories.popleft()) as listing:
                for entry in listing:
                    if seen >= most:
                        unread.append(f"`{top}` has too many files: commands can write protected ones by hard links")
                        return
                    seen += 1
                    yield entry
                    if entry.name not in _CONTENT and entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
        except OSError:
            continue


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


# Breadth first, so that what is left out lies deep. Each directory costs some microseconds a command.
MAX_DIRECTORIES: Final = 20_000
_MAX_ENTRIES: Final = 1_000_000
# Bulk that tools unpack: nobody works in a repository there, and it would use the scan up.
_BULK: Final = frozenset({"node_modules", "site-packages", "__pycache__"})
# Change times are this coarse on older kernels: what changed just before it was listed may change again unseen.
COARSE_NS: Final = 20_000_000


class _Listing(Value):
    """`changed` is the change time of the directory, 0 when it is too young to be relied on."""

    changed: int
    entries: int
    found: tuple[str, ...]
    directories: tuple[str, ...]


def is_young(changed: int) -> bool:
    """Whether a change time in nanoseconds is too recent to tell a later change from this one."""
    return time.time_ns() - changed < COARSE_NS


# What git takes for a repository without a working tree.
_SHAPES: Final = (frozenset(("HEAD", "objects", "refs")), frozenset(("HEAD", "commondir")))
_BARE_NAMES: Final = frozenset(RUN_BY_GIT).union(*_SHAPES)


class NestedNames:
    """Where the `names` are found at and below `top`; links are not followed. What git would run of repositories
    without a working tree is among them.

    `is_partial` says after a search that there was more than 20,000 directories, or a million entries.
    """

    def __init__(self, top: Path, names: Collection[str]) -> None:
        self.top: Final = top
        self.is_partial = False
        self._names = frozenset(names)
        self._listings: dict[str, _Listing] = {}

    def find(self) -> list[Path]:
        """The paths as the disk is now."""
        found: list[str] = []
        before, listings = self._listings, dict[str, _Listing]()
        directories = deque([str(self.top)])
        entries = 0
        while directories and len(listings) < MAX_DIRECTORIES and entries < _MAX_ENTRIES:
            directory = directories.popleft()
            known = before.get(directory)
            try:
                changed = os.lstat(directory).st_ctime_ns
                if known is None or known.changed != changed:
                    known = self._list(directory, changed)
            except OSError:
                continue
            listings[directory] = known
            entries += known.entries
            found += known.found
            directories += known.directories
        self._listings, self.is_partial = listings, bool(directories)
        return [Path(path) for path in found]

    def _list(self, directory: str, changed: int) -> _Listing:
        found: list[str] = []
        directories: list[str] = []
        entries = 0
        young = is_young(changed)
        parts: set[str] = set()
        with os.scandir(directory) as listing:
            for entry in listing:
                entries += 1
                if entry.name in _BARE_NAMES:
                    parts.add(entry.name)
                if entry.name.lower() in self._names:
                    found.append(entry.path)
                elif entry.name not in _BULK and entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                if entries >= _MAX_ENTRIES:
                    break
        if any(shape <= parts for shape in _SHAPES):
            found += (f"{directory}/{name}" for name in parts.intersection(RUN_BY_GIT))
        return _Listing(0 if young else changed, entries, tuple(found), tuple(directories))

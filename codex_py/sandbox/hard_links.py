"""Other names of protected files: a hard link below a writable folder leads past every mount over the file itself."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

# How many files are asked for further names, and how many entries of the folders are looked through for these.
_CHECKED_FILES: Final = 2000
_SCANNED_ENTRIES: Final = 20_000
# What git keeps there it finds by its content, and it links it when it clones.
_CONTENT: Final = frozenset(("objects", "lfs"))


def other_names(protected: Iterable[Path], roots: Sequence[Path]) -> list[Path]:
    """The paths below `roots` that are links to a file which is, or lies in, one of the `protected` paths.

    Nothing is looked through unless such a file has more than one name. Those inside the protected paths are among what
    is given back.
    """
    inodes = {(found.st_dev, found.st_ino) for found in _linked(protected)}
    if not inodes:
        return []
    numbers = {number for _, number in inodes}
    return [
        Path(entry.path)
        for root in roots
        for entry in _below(str(root), _SCANNED_ENTRIES)
        if entry.inode() in numbers and (found := _status(entry)) and (found.st_dev, found.st_ino) in inodes
    ]


def _linked(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """The files with several names in protected places, which are files or folders themselves."""
    left = _CHECKED_FILES
    for path in paths:
        try:
            own = os.lstat(path)
        except OSError:
            continue
        found = [own] if stat.S_ISREG(own.st_mode) else []
        if stat.S_ISDIR(own.st_mode):
            below = list(_below(str(path), left))
            left -= len(below)
            found = [status for entry in below if (status := _status(entry))]
        yield from (status for status in found if stat.S_ISREG(status.st_mode) and status.st_nlink > 1)


def _below(top: str, most: int) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder, breadth first, at most so many; links are not followed."""
    directories = deque([top])
    seen = 0
    while directories:
        try:
            with os.scandir(directories.popleft()) as listing:
                for entry in listing:
                    if seen >= most:
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

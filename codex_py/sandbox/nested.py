"""Protected names below a directory that commands write, looked up again before each command.

A directory is listed again only when its change time is another one, which no command can set.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

# Breadth first, so that what is left out lies deep.
_MAX_DIRECTORIES: Final = 500
_MAX_ENTRIES: Final = 10_000
# Bulk that tools unpack: nobody works in a repository there, and it would use the scan up.
_BULK: Final = frozenset({"node_modules", "site-packages", "__pycache__"})
# Change times are this coarse on older kernels: what changed just before it was listed may change again unseen.
_COARSE_NS: Final = 20_000_000


class _Listing(NamedTuple):
    """`changed` is the change time of the directory, 0 when it is too young to be relied on."""

    changed: int
    entries: int
    found: tuple[str, ...]
    directories: tuple[str, ...]


def is_young(changed: int) -> bool:
    """Whether a change time in nanoseconds is too recent to tell a later change from this one."""
    return time.time_ns() - changed < _COARSE_NS


class NestedNames:
    """Where the `names` are found at and below `top`; links are not followed."""

    def __init__(self, top: Path, names: Collection[str]) -> None:
        self._top = str(top)
        self._names = frozenset(names)
        self._listings: dict[str, _Listing] = {}

    def find(self) -> list[Path]:
        """The paths as the disk is now, as far as 500 directories and 10,000 entries."""
        found: list[Path] = []
        before, self._listings = self._listings, {}
        directories = deque([self._top])
        entries = 0
        while directories and len(self._listings) < _MAX_DIRECTORIES and entries < _MAX_ENTRIES:
            directory = directories.popleft()
            listing = self._listing(directory, before.get(directory))
            if listing is not None:
                self._listings[directory] = listing
                entries += listing.entries
                found.extend(map(Path, listing.found))
                directories.extend(listing.directories)
        return found

    def _listing(self, directory: str, known: _Listing | None) -> _Listing | None:
        try:
            changed = os.lstat(directory).st_ctime_ns
            if known is not None and known.changed == changed:
                return known
            return self._list(directory, changed)
        except OSError:
            return None

    def _list(self, directory: str, changed: int) -> _Listing:
        found: list[str] = []
        directories: list[str] = []
        entries = 0
        young = is_young(changed)
        with os.scandir(directory) as listing:
            for entry in listing:
                entries += 1
                if entry.name.lower() in self._names:
                    found.append(entry.path)
                elif entry.name not in _BULK and entry.is_dir(follow_symlinks=False):
                    directories.append(entry.path)
                if entries >= _MAX_ENTRIES:
                    break
        return _Listing(0 if young else changed, entries, tuple(found), tuple(directories))

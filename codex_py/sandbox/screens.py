"""Hiding files and folders of ours together with their names, whoever replaces them and whenever they come.

A mount on a file is gone once another program renames a new file over it, and on a missing file there is none. So an
empty folder takes the place of the file's own for one command, and everything else of that folder is put into it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import draft_of
from codex_py.sandbox.layout import Mount, MountKind, in_order

# Beyond it a folder is not one of a program's own; each entry costs up to 0.2 ms a command.
_MOST_ENTRIES: Final = 500
_COPIED_BYTES: Final = 64 << 10
_MOST_COPIES: Final = 64


def places_of(secrets: Iterable[Path]) -> list[Path]:
    """The real places of files that may be missing: their own, and where those that are links lead.

    A name that starts with `*` stands for all that end alike.
    """
    places: dict[Path, None] = {}
    parents: dict[Path, str] = {}
    for secret in secrets:
        parent = secret.parent
        if parent not in parents:
            parents[parent] = os.path.realpath(parent)
        own = f"{parents[parent]}/{secret.name}"
        places[Path(own)] = None
        if os.path.islink(own):  # noqa: PTH114
            places[Path(os.path.realpath(own))] = None
    return list(places)


def existing_places(secrets: Iterable[Path]) -> Iterator[Path]:
    """Those places, there or not, and what is there by now for a name that starts with `*`."""
    for place in places_of(secrets):
        if not place.name.startswith("*"):
            yield place
            continue
        with suppress(OSError):
            yield from (path for path in place.parent.iterdir() if path.name.endswith(place.name[1:]))


def lay_screens(mounts: Iterable[Mount], secrets: Iterable[Path]) -> list[Mount]:
    """The mounts with a screen for the folder of every secret, parents first.

    A folder that is itself writable, or has more than 500 entries, cannot be stood in for: it stays as it is.
    """
    laid = {mount.path: mount for mount in mounts}
    names: dict[Path, set[str]] = {}
    for place in places_of(secrets):
        names.setdefault(place.parent, set()).add(place.name)
    for folder, hidden in names.items():
        laid |= {mount.path: mount for mount in _screen(folder, hidden, laid)}
    return in_order(laid.values())


def open_copies(mounts: Sequence[Mount]) -> list[Mount]:
    """The mounts with the small files among the shown ones open, to be copied instead of mounted. The caller closes."""
    opened = 0
    result: list[Mount] = []
    for mount in mounts:
        if mount.kind == "shown" and opened < _MOST_COPIES:
            fd = _open_small(mount.path)
            if fd is not None:
                mount = mount.replace(fd=fd)
                opened += 1
        result.append(mount)
    return result


def _screen(folder: Path, hidden: Collection[str], laid: Mapping[Path, Mount]) -> list[Mount]:
    holder = next((laid[path] for path in (folder, *folder.parents) if path in laid), None)
    open_to_writes = holder is not None and holder.kind in ("writable", "shown-writable")
    covered = holder is not None and holder.kind in ("hidden-folder", "missing")
    if covered or folder == folder.parent or (open_to_writes and holder == Mount("writable", folder)):
        return []
    entries = _entries(folder)
    if entries is None:
        return []
    drafts = tuple(draft_of(folder / name, "").name for name in hidden if not name.startswith("*"))
    endings = tuple(name.removeprefix("*") for name in hidden if name.startswith("*"))
    mounts = [Mount("screen", folder)]
    for entry in entries:
        path = Path(entry.path)
        known = laid.get(path)
        if entry.name in hidden or (endings and entry.name.endswith(endings)):
            mounts.append(Mount("hidden-entry" if entry.is_dir(follow_symlinks=False) else "hidden-file", path))
        elif entry.name.startswith(drafts):
            continue
        elif known is None:
            mounts.append(Mount(_showing(entry, writable=open_to_writes), path))
        elif known.kind in ("read-only", "link"):
            mounts.append(Mount(_showing(entry, writable=False), path))
    return mounts


def _entries(folder: Path) -> list[os.DirEntry[str]] | None:
    entries: list[os.DirEntry[str]] = []
    try:
        with os.scandir(folder) as listing:
            for entry in listing:
                if len(entries) == _MOST_ENTRIES:
                    return None
                entries.append(entry)
    except OSError:
        return None
    return entries


def _showing(entry: os.DirEntry[str], *, writable: bool) -> MountKind:
    if entry.is_symlink():
        return "shown-link"
    return "shown-writable" if writable else "shown"


def _open_small(path: Path) -> int | None:
    try:
        if not _is_small(os.lstat(path)):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    # It may have been replaced since.
    if _is_small(os.fstat(fd)):
        return fd
    os.close(fd)
    return None


def _is_small(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) and status.st_size <= _COPIED_BYTES

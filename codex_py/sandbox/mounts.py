"""The mounts of a sandbox over the read-only root for one command, and the files it hides.

A mount on a file is gone once another program renames a new file over it, and on a missing file there is none. So an
empty directory takes the place of the file's own for one command, and everything else of that directory is put into it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.paths import draft_prefix, is_there
from codex_py.protocol.value import Value
from codex_py.sandbox.policy import WritableRoot
from codex_py.sandbox.protected_names import is_young
from codex_py.sandbox.unreadable import find_real_paths

MountType: TypeAlias = Literal[
    "writable",
    "read-only",
    "link",
    "hidden-folder",
    "hidden-file",
    "hidden-entry",
    "screen",
    "shown",
    "shown-writable",
    "shown-link",
]


class Mount(Value):
    """One place and what becomes of it.

    A `link` is pinned to its name, so that it can be neither removed nor replaced. What is hidden can be neither
    read nor written. A `screen` is an empty directory in the place of one whose entries are
    `shown` in it one by one, as far as they are still there, or an empty `hidden-entry`; `fd` is what is copied to the
    place instead of a mount: a shown file, or nothing in the place of a hidden one.
    """

    type: MountType
    path: Path
    fd: int | None = None


def plan_mounts(
    roots: Sequence[WritableRoot],
    *,
    moved: Iterable[Path] = (),
    hidden: Iterable[Path] = (),
    free: Collection[Path] = (),
) -> list[Mount]:
    """The mounts for these roots; nothing is mounted where nothing is. `moved` are protected paths that may have left
    the place `roots` knows them at; `hidden` are real paths; protected ones that are `free` can be written."""
    own, unseen = {root.path for root in roots}, dict.fromkeys(hidden)
    inside = {path for path in moved if any(root in own for root in path.parents)}
    protected = ({path for root in roots for path in root.protected} | inside) - own
    protected = {path for path in protected if path not in free}
    # A mount can be neither renamed nor removed.
    closed = protected.union(unseen)
    ways = {path for root in roots for path in root.ways if closed.isdisjoint((path, *path.parents))}
    mounts = {path: Mount("writable", path) for path in own.union(filter(is_there, ways))}
    for path in protected:
        if os.path.lexists(path):
            # Where a link leads is protected on its own.
            mounts[path] = Mount("link" if path.is_symlink() else "read-only", path)
    there = [path for path in unseen if os.access(path, os.F_OK, follow_symlinks=False)]  # most of them are missing
    mounts |= {path: Mount(_hiding(path), path) for path in there if is_there(path) and path not in own}
    return in_order(mounts.values())


def in_order(mounts: Iterable[Mount]) -> list[Mount]:
    """Parents first: a later mount hides what an earlier one put at the same place or below."""
    return sorted(mounts, key=_depth)


def _depth(mount: Mount) -> tuple[int, str]:
    path = str(mount.path)
    return path.count("/"), path


def _hiding(path: Path) -> MountType:
    return "hidden-folder" if path.is_dir() else "hidden-file"


def holds_roots(directory: Path, mounts: Iterable[Mount]) -> bool:
    """Whether a writable root lies below `directory`: then it can be hidden, but must be passed through."""
    return any(mount.type == "writable" and mount.path.is_relative_to(directory) for mount in mounts)


def split_off_root(mounts: Iterable[Mount]) -> tuple[bool, list[Mount]]:
    """Whether `/` itself is writable, and the mounts without it: that one comes before `/dev` and `/proc` are made."""
    root = Mount("writable", Path("/"))
    remaining = list(mounts)
    return root in remaining, [mount for mount in remaining if mount != root]


# Beyond it a directory is not one of a program's own; each entry costs up to 0.2 ms a command.
_MAX_ENTRIES: Final = 500
_COPIED_BYTES: Final = 64 << 10
_MAX_COPIES: Final = 64


_EntryType: TypeAlias = Literal["file", "folder", "link"]


def find_existing_paths(secrets: Iterable[Path]) -> Iterator[Path]:
    """Those paths, existing or not, and the existing paths for a name that starts with `*`."""
    for real_path in find_real_paths(secrets):
        if not real_path.name.startswith("*"):
            yield real_path
            continue
        with suppress(OSError):
            yield from (path for path in real_path.parent.iterdir() if path.name.endswith(real_path.name[1:]))


class _Listing(NamedTuple):
    """The entries of a directory with their types; `changed` is its change time, 0 if too young to rely on."""

    changed: int
    entries: tuple[tuple[Path, _EntryType], ...]


class Screens:
    """Hides `secrets`, whose names may start with `*`. Lists a directory again only when its change time is another."""

    def __init__(self, secrets: Iterable[Path]) -> None:
        self._secrets: dict[str, list[Path]] = {}
        for secret in secrets:
            self._secrets.setdefault(str(secret.parent), []).append(secret)
        self._listings: dict[Path, _Listing] = {}
        self._names: dict[str, tuple[str, int, Mapping[Path, Sequence[str]]]] = {}

    def lay(self, mounts: Iterable[Mount]) -> list[Mount]:
        """The mounts with a screen for the directory of every secret, parents first.

        A directory that is itself writable, or has more than 500 entries, cannot be stood in for: it stays as it is.
        """
        laid = {mount.path: mount for mount in mounts}
        names: dict[Path, dict[str, None]] = {}
        for parent, secrets in self._secrets.items():
            for directory, found in self._names_of(parent, secrets).items():
                names.setdefault(directory, {}).update(dict.fromkeys(found))
        for directory, hidden in names.items():
            laid |= {mount.path: mount for mount in self._screen(directory, hidden, laid)}
        return in_order(laid.values())

    def _names_of(self, parent: str, secrets: Sequence[Path]) -> Mapping[Path, Sequence[str]]:
        """`find_real_paths` for secrets of one directory, as the names in each directory.

        As long as that directory is unchanged, none of them becomes a link.
        """
        real = os.path.realpath(parent)
        try:
            changed = os.lstat(real).st_ctime_ns
        except OSError:
            return _by_directory(find_real_paths(secrets))
        known = self._names.get(parent)
        if known is not None and known[:2] == (real, changed):
            return known[2]
        paths = find_real_paths(secrets)
        names = _by_directory(paths)
        if len(paths) == len(secrets) and not is_young(changed):
            self._names[parent] = real, changed, names
        return names

    def _screen(self, directory: Path, hidden: Collection[str], laid: Mapping[Path, Mount]) -> list[Mount]:
        holder = next((laid[path] for path in (directory, *directory.parents) if path in laid), None)
        open_to_writes = holder is not None and holder.type in ("writable", "shown-writable")
        covered = holder is not None and holder.type == "hidden-folder"
        if covered or directory == directory.parent or (open_to_writes and holder == Mount("writable", directory)):
            return []
        entries = self._entries(directory)
        if entries is None:
            return []
        drafts = tuple(draft_prefix(name) for name in hidden if not name.startswith("*"))
        endings = tuple(name.removeprefix("*") for name in hidden if name.startswith("*"))
        mounts = [Mount("screen", directory)]
        for path, entry_type in entries:
            name, known = path.name, laid.get(path)
            if name in hidden or (endings and name.endswith(endings)):
                mounts.append(Mount("hidden-entry" if entry_type == "folder" else "hidden-file", path))
            elif name.startswith(drafts):
                continue
            elif known is None:
                mounts.append(Mount(_showing(entry_type, writable=open_to_writes), path))
            elif known.type in ("read-only", "link"):
                mounts.append(Mount(_showing(entry_type, writable=False), path))
        return mounts

    def _entries(self, directory: Path) -> Sequence[tuple[Path, _EntryType]] | None:
        known = self._listings.get(directory)
        try:
            changed = os.lstat(directory).st_ctime_ns
            if known is None or known.changed != changed:
                known = self._listings[directory] = _list(directory, changed)
        except OSError:
            return None
        return known.entries if len(known.entries) <= _MAX_ENTRIES else None


def _by_directory(paths: Iterable[Path]) -> Mapping[Path, Sequence[str]]:
    names: dict[Path, list[str]] = {}
    for path in paths:
        names.setdefault(path.parent, []).append(path.name)
    return names


def _list(directory: Path, changed: int) -> _Listing:
    young = is_young(changed)
    with os.scandir(directory) as listing:
        found = islice(listing, _MAX_ENTRIES + 1)
        entries: tuple[tuple[Path, _EntryType], ...] = tuple((Path(entry.path), _type_of(entry)) for entry in found)
    return _Listing(0 if young else changed, entries)


def _type_of(entry: os.DirEntry[str]) -> _EntryType:
    if entry.is_symlink():
        return "link"
    return "folder" if entry.is_dir(follow_symlinks=False) else "file"


def _showing(entry_type: _EntryType, *, writable: bool) -> MountType:
    if entry_type == "link":
        return "shown-link"
    return "shown-writable" if writable else "shown"


def open_copies(mounts: Sequence[Mount]) -> list[Mount]:
    """The mounts with the small files among the shown ones open, to be copied instead of mounted. The caller closes.

    In the place of a hidden file of a screen nothing is copied.
    """
    opened = 0
    result: list[Mount] = []
    screens = {mount.path for mount in mounts if mount.type == "screen"}
    for mount in mounts:
        if mount.type == "hidden-file" and mount.path.parent in screens:
            mount = mount.replace(fd=os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        if mount.type == "shown" and opened < _MAX_COPIES:
            fd = _open_small(mount.path)
            if fd is not None:
                mount = mount.replace(fd=fd)
                opened += 1
        result.append(mount)
    return result


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

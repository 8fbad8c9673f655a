"""What a sandbox lays over the read-only world for one command: mounts, parents first. Looks at the disk, no more."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from codex_py.paths import is_placeholder, is_there
from codex_py.protocol.value import Value
from codex_py.sandbox.policy import PROTECTED_NAMES, WritableRoot

MountType: TypeAlias = Literal[
    "writable",
    "read-only",
    "link",
    "missing",
    "missing-file",
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

    A `link` is pinned to its name, so that it can be neither removed nor replaced; `missing` is kept from being made,
    and so is a `missing-file`, where an empty file stands meanwhile, for programs that fail at a directory; what is
    hidden can be neither read nor written. A `screen` is an empty folder in the place of one whose entries are `shown`
    in it one by one, as far as they are still there, or an empty `hidden-entry`; `fd` is what is copied to the place
    instead of a mount: a shown file, or nothing in the place of a hidden one.
    """

    type: MountType
    path: Path
    fd: int | None = None


def plan_mounts(
    roots: Sequence[WritableRoot], *, moved: Iterable[Path] = (), hidden: Iterable[Path] = ()
) -> list[Mount]:
    """The mounts for these roots. `moved` are protected paths that may have left the place `roots` knows them at;
    `hidden` are real paths, of which the missing ones are left out."""
    own, unseen = {root.path for root in roots}, dict.fromkeys(hidden)
    inside = {path for path in moved if any(root in own for root in path.parents)}
    protected = ({path for root in roots for path in root.protected} | inside) - own
    # A mount can be neither renamed nor removed.
    closed = protected.union(unseen)
    ways = {path for root in roots for path in root.ways if closed.isdisjoint((path, *path.parents))}
    mounts = {path: Mount("writable", path) for path in own.union(filter(is_there, ways))}
    reserved = {path for root in roots for path in root.reserved}
    reserved_files = {path for root in roots for path in root.reserved_files}
    # Of other programs: an empty `.vscode` would stand on the host while a command runs.
    further = {name for root in roots for name in root.names}.difference(PROTECTED_NAMES)
    for path in protected:
        at_top = path.parent in own and path.name.lower() not in further
        keep = at_top or path in reserved or (path.name == ".git" and path.parent in ways)
        mount_type = _protection(
            path, missing="missing-file" if path in reserved_files else "missing" if keep else None
        )
        if mount_type is not None:
            mounts[path] = Mount(mount_type, path)
    there = [path for path in unseen if os.access(path, os.F_OK, follow_symlinks=False)]  # most of them are missing
    mounts |= {path: Mount(_hiding(path), path) for path in there if _is_lasting(path) and path not in own}
    return in_order(mounts.values())


def in_order(mounts: Iterable[Mount]) -> list[Mount]:
    """Parents first: a later mount hides what an earlier one put at the same place or below."""
    return sorted(mounts, key=_depth)


def _depth(mount: Mount) -> tuple[int, str]:
    path = str(mount.path)
    return path.count("/"), path


def _protection(path: Path, *, missing: MountType | None) -> MountType | None:
    if path.is_symlink():
        return "link"  # where it leads is protected on its own
    if _is_lasting(path):
        return "read-only"
    return missing


def _is_lasting(path: Path) -> bool:
    """Whether something is there, and no placeholder: one of another command's may come and go at any moment."""
    return is_there(path) and not is_placeholder(path) and is_there(path)


def _hiding(path: Path) -> MountType:
    return "hidden-folder" if path.is_dir() else "hidden-file"


def holds_roots(directory: Path, mounts: Iterable[Mount]) -> bool:
    """Whether a writable root lies below `folder`: then it can be hidden, but must be passed through."""
    return any(mount.type == "writable" and mount.path.is_relative_to(directory) for mount in mounts)


def split_off_root(mounts: Iterable[Mount]) -> tuple[bool, list[Mount]]:
    """Whether `/` itself is writable, and the mounts but for that one: it comes before `/dev` and `/proc` are made."""
    root = Mount("writable", Path("/"))
    remaining = list(mounts)
    return root in remaining, [mount for mount in remaining if mount != root]

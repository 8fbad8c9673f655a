"""Which paths a policy lets commands write, and which paths inside those stay read-only.

Read-only inside every root are `.git`, `.codex` and `.agents`: what is in them runs, or is believed, outside the
sandbox later. That goes for the ones at the top whether or not they exist, for those of the folders above the
working directory, for those found below it when the session looks first, for where a `.git` file points, for what git
runs of a root that is a repository itself, and for the other names that their files have as hard links. So does our own
home, wherever it lies: what commands are asked about, and held by, is written there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import is_file, is_folder, real_path
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.protocol.value import Value
from codex_py.sandbox.hard_links import other_names

PROTECTED_NAMES: Final = (".git", ".codex", ".agents")

# How far nested repositories are looked for; breadth first, so that what is left out lies deep.
_SCANNED_FOLDERS: Final = 500
_SCANNED_ENTRIES: Final = 10_000
_POINTER_BYTES: Final = 4096
_PATH_BYTES: Final = 4096
_NAME_BYTES: Final = 255
# Bulk that tools unpack: nobody works in a repository there, and it would use the scan up.
_BULK: Final = frozenset({"node_modules", "site-packages", "__pycache__"})


# A folder with the first ones is a repository without a working tree; git runs what is in the others, or said there.
_BARE: Final = ("HEAD", "objects", "refs")
_BARE_RUNS: Final = ("hooks", "config")

# Of our home, what others may have a hard link to and must not write through it.
_SETTINGS: Final = ("config.toml", "rules")


class WritableRoot(Value):
    """A folder commands may write below, and the paths inside it they may not; all real paths.

    The first ones of `protected` are the root's own three names, there or not. `ways` are the folders that lead to our
    home and to other roots: they can be worked in, and neither renamed nor removed, or another folder could be put in
    the place of those.
    """

    path: Path
    protected: tuple[Path, ...] = ()
    ways: tuple[Path, ...] = ()


def writable_roots(
    policy: SandboxPolicy,
    cwd: Path,
    env: Mapping[str, str],
    *,
    home: Path | None = None,
    unreadable: Sequence[Path] = (),
) -> tuple[WritableRoot, ...]:
    """Where `policy` lets a session that works in `cwd` write; none for read-only, `/` for full access.

    Roots that are not folders are left out, and so is `home`, our own, which is protected in any other root. `env`
    tells where `TMPDIR` is; no temporary folder is what lies in an `unreadable` or a protected path. Reads the disk, a
    bounded part of it.
    """
    match policy:
        case ReadOnly():
            return ()
        case DangerFullAccess():
            return (WritableRoot(Path("/")),)
        case WorkspaceWrite():
            found = [folder for folder in _temporary(policy, env) if not _is_below(folder, unreadable)]
            return _workspace_roots(policy, cwd, Path(real_path(home)) if home else None, found)


def is_writable(path: Path, roots: Sequence[WritableRoot]) -> bool:
    """Whether a write to the absolute `path`, its links followed, stays inside the roots and off what is protected."""
    real = Path(real_path(path))
    holders = [root for root in roots if real.is_relative_to(root.path)]
    if not holders:
        return False
    root = max(holders, key=lambda holder: len(holder.path.parts))
    if not root.protected:
        return True
    inside = real.relative_to(root.path).parts
    if any(part.lower() in PROTECTED_NAMES for part in inside):
        return False
    kept = {path for holder in holders for path in holder.protected if path.is_relative_to(root.path)}
    return not any(real.is_relative_to(path) for path in kept)


def _temporary(policy: WorkspaceWrite, env: Mapping[str, str]) -> list[Path]:
    places: list[Path] = []
    if not policy.exclude_slash_tmp:
        places.append(Path("/tmp"))
    chosen = env.get("TMPDIR", "")
    if chosen.startswith("/") and not policy.exclude_tmpdir_env_var:
        places.append(Path(chosen))
    return _folders(places)


def _workspace_roots(
    policy: WorkspaceWrite, cwd: Path, home: Path | None, temporary: Sequence[Path]
) -> tuple[WritableRoot, ...]:
    worked_in = [
        folder for folder in _folders([cwd, *(cwd / root for root in policy.writable_roots)]) if folder != home
    ]
    names = [root / name for root in worked_in for name in PROTECTED_NAMES]
    shut = [*names, *(target for path in names for target in _targets(path))]
    spare = [folder for folder in temporary if folder != home and not _is_below(folder, shut)]
    roots = list(dict.fromkeys([*worked_in, *spare]))
    own = {root: [root / name for name in PROTECTED_NAMES] for root in roots}
    found = [path for root in worked_in for path in (*_of_bare(root), *_nested(root), *_above(root, roots))]
    named = [path for names in own.values() for path in names]
    extra = [*sorted(found), *(target for path in (*named, *found) for target in _targets(path))]
    settings = [home / name for name in _SETTINGS] if home else []
    linked = other_names([*named, *extra, *settings], roots)
    extra += [home] if home else []
    held = {*named, *extra}
    extra += [path for path in linked if held.isdisjoint(path.parents)]
    return tuple(
        WritableRoot(
            root,
            tuple(dict.fromkeys([*own[root], *(path for path in extra if path.is_relative_to(root))])),
            _ways(root, [home, *roots] if home else roots),
        )
        for root in roots
    )


def _ways(root: Path, places: Iterable[Path]) -> tuple[Path, ...]:
    """The folders between a root and the places inside it."""
    return tuple(dict.fromkeys(folder for place in places for folder in place.parents if root in folder.parents))


def _is_below(folder: Path, places: Iterable[Path]) -> bool:
    return any(folder.is_relative_to(place) for place in places)


def _of_bare(root: Path) -> list[Path]:
    """What git runs of a repository that is `root` itself, there or not."""
    is_bare = all(os.path.lexists(root / name) for name in _BARE)
    return [root / name for name in _BARE_RUNS] if is_bare else []


def _folders(paths: Iterable[Path]) -> list[Path]:
    real = [Path(real_path(path)) for path in paths]
    return [path for path in dict.fromkeys(real) if is_folder(path)]


def _above(root: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Protected paths of the folders between `root` and another root that holds it, which are writable through that.

    `.git` is one there or not: git would believe it in `root`.
    """
    for folder in root.parents:
        if any(folder != other and folder.is_relative_to(other) for other in roots):
            yield from (folder / name for name in PROTECTED_NAMES if name == ".git" or os.path.lexists(folder / name))


def _nested(root: Path) -> list[Path]:
    """Protected paths below the top of `root`; links are not followed."""
    found: list[Path] = []
    top = str(root)
    folders = deque([top])
    seen = entries = 0
    while folders and seen < _SCANNED_FOLDERS and entries < _SCANNED_ENTRIES:
        folder = folders.popleft()
        seen += 1
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    entries += 1
                    if entry.name.lower() in PROTECTED_NAMES:
                        if folder != top:
                            found.append(Path(entry.path))
                    elif entry.name not in _BULK and entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    if entries >= _SCANNED_ENTRIES:
                        break
        except OSError:
            continue
    return found


def _targets(path: Path) -> list[Path]:
    """Where a protected path leads: through a symbolic link, or from a `.git` file to the repository it stands for."""
    if os.path.islink(path):  # noqa: PTH114
        return leads_to(path)
    if path.name != ".git" or not is_file(path):
        return []
    pointer = _first_line(path)
    if not pointer.startswith("gitdir:"):
        return []
    targets = leads_to(path.parent / pointer.removeprefix("gitdir:").strip())
    shared = _first_line(targets[0] / "commondir") if targets else ""
    return [*targets, *leads_to(targets[0] / shared)] if shared else targets


def leads_to(path: Path) -> list[Path]:
    """The real path, or nothing where no file can have it: what pointers and patterns say is anybody's text."""
    try:
        real = Path(real_path(path))
    except ValueError:  # a NUL
        return []
    fits = len(os.fsencode(real)) < _PATH_BYTES and all(len(os.fsencode(part)) <= _NAME_BYTES for part in real.parts)
    return [real] if fits else []


def _first_line(path: Path) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, _POINTER_BYTES).decode("utf-8", "replace").partition("\n")[0].strip()
    except OSError:
        return ""
    finally:
        os.close(fd)

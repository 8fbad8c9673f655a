"""Which paths a policy lets commands write, and which paths inside those stay read-only.

Read-only inside every root are `.git`, `.codex` and `.agents`: files in them are later run or trusted outside the
sandbox. That goes for the ones at the top, for those of the directories above the working directory, for those found
below it, for where a `.git` file points, for what git runs of a root that is a repository itself, for the directories
of hooks and the files that a repository's settings name, and for the other names that their files have as hard links.
CODEX_HOME is protected too, wherever it lies: it holds the rules and settings that restrict commands. The user's
settings add names of files of other programs. Missing ones are on the list too: patches ask before they make one, some
sandboxes deny it, and where git would use one the place is watched.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import is_directory, real_path
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.protocol.value import Value
from codex_py.sandbox.denials import expand_home
from codex_py.sandbox.git_directories import (
    dot_gits_around,
    find_stores,
    find_targets,
    git_directories_in,
    is_git_directory,
    run_by_git,
)
from codex_py.sandbox.git_runs import GitLocation, has_git, is_head
from codex_py.sandbox.git_settings import (
    hook_directories,
    included_files,
    leads_to,
    submodule_directories,
    user_configs,
)
from codex_py.sandbox.protected_names import NestedNames, other_names

PROTECTED_NAMES: Final = (".git", ".codex", ".agents")

# Of our home, what others may have a hard link to and must not write through it.
_SETTINGS: Final = ("config.toml", "rules")


class WritableRoot(Value):
    """A directory commands may write below, and the paths inside it they may not; all real paths."""

    path: Path
    protected: tuple[Path, ...] = ()
    """Paths that stay as they are, there or not; the first ones are the root's own three names."""
    ways: tuple[Path, ...] = ()
    """Directories that lead to our home, to other roots and to existing protected paths: they can be worked in, and
    neither renamed nor removed, or another directory could be put in the place of those."""
    unmade: tuple[Path, ...] = ()
    """The first missing directories on the way to missing protected paths, for a sandbox that denies by path."""
    locations: tuple[GitLocation, ...] = ()
    """Where a repository, a hook or a settings file that comes is looked at."""
    names: tuple[str, ...] = PROTECTED_NAMES
    """Protected wherever they are found below."""
    unread: tuple[str, ...] = ()
    """Lines for the user about what was too large to be looked through."""


def writable_roots(
    policy: SandboxPolicy,
    cwd: Path,
    env: Mapping[str, str],
    *,
    home: Path | None = None,
    unreadable: Sequence[Path] = (),
    protected: Sequence[str] = (),
) -> tuple[WritableRoot, ...]:
    """Where `policy` lets a session that works in `cwd` write; none for read-only, `/` for full access.

    Roots that are not directories are left out, and so is `home`, our own, which is protected in any other root. `env`
    tells where `TMPDIR` is; no temporary directory is what lies in an `unreadable` or a protected path. `protected` are
    the user's further names to protect, and paths that start with `~/`. Reads the disk, a bounded part of it.
    """
    match policy:
        case ReadOnly():
            return ()
        case DangerFullAccess():
            return (WritableRoot(Path("/")),)
        case WorkspaceWrite():
            found = [directory for directory in _temporary(policy, env) if not _is_below(directory, unreadable)]
            worked_in = _directories([cwd, *(cwd / root for root in policy.writable_roots)])
            closed = unreadable if policy.git else None
            return _workspace_roots(worked_in, Path(real_path(home)) if home else None, found, env, protected, closed)


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
    if any(part.lower() in root.names for part in inside):
        return False
    protected = {path for holder in holders for path in holder.protected if path.is_relative_to(root.path)}
    return not any(real.is_relative_to(path) for path in protected)


def _temporary(policy: WorkspaceWrite, env: Mapping[str, str]) -> list[Path]:
    directories: list[Path] = []
    if not policy.exclude_slash_tmp:
        directories.append(Path("/tmp"))
    chosen = env.get("TMPDIR", "")
    if chosen.startswith("/") and not policy.exclude_tmpdir_env_var:
        directories.append(Path(chosen))
    return _directories(directories)


def _workspace_roots(
    worked_in: Sequence[Path],
    home: Path | None,
    temporary: Sequence[Path],
    env: Mapping[str, str],
    protected: Sequence[str],
    closed: Sequence[Path] | None,
) -> tuple[WritableRoot, ...]:
    """The roots, with the git directories of their repositories unless they are `closed`: in these paths, or all."""
    worked_in = [directory for directory in worked_in if directory != home]
    further = tuple(name.lower() for name in protected if "/" not in name)
    names = [root / name for root in worked_in for name in PROTECTED_NAMES]
    shut = [*names, *(target for path in names for target in find_targets(path))]
    spare = [directory for directory in temporary if directory != home and not _is_below(directory, shut)]
    roots = list(dict.fromkeys([*worked_in, *spare]))
    own = {root: [*(root / name for name in PROTECTED_NAMES), *_of_bare(root)] for root in roots}
    searches = [NestedNames(root, (*PROTECTED_NAMES, *further)) for root in worked_in]
    nested = [path for search in searches for path in search.find() if path not in names]
    found = [*nested, *(path for root in worked_in for path in _above(root, roots))]
    dot_gits = [*dot_gits_around(worked_in), *(path for path in nested if path.name == ".git")]
    # What lies in CODEX_HOME can be written only where it is worked in.
    stores = _stores(worked_in, dot_gits, None if closed is None else [*closed, *([home] if home else [])])
    roots = list(dict.fromkeys([*roots, *stores]))
    own |= {store: run_by_git(store) for store in stores if store not in own}
    opened = {directory for store in stores for directory in git_directories_in(store)}
    named = [path for names in own.values() for path in names if path not in opened]
    extra = [*sorted(found), *(target for path in (*named, *found) for target in find_targets(path))]
    extra = [path for path in extra if path not in opened]
    settings = [home / name for name in _SETTINGS] if home else []
    unread: list[str] = []
    linked = other_names([*named, *extra, *settings], roots, unread)
    extra += [home] if home else []
    held = {*named, *extra}
    extra += [path for path in linked if held.isdisjoint(path.parents)]
    profiles = [path for path in _profiles(env, protected, worked_in) if not _is_below(path, held)]
    named_locations = [*_named_locations(dot_gits, env, unread), *_user_settings(env, profiles)]
    locations = [location for location in named_locations if not _is_below(location.path, held)]
    settings = [root / name for root in worked_in for name in protected if "/" not in name]
    reserved = list(dict.fromkeys([*(location.path for location in locations), *profiles, *settings]))
    between = [path.parent for path in found if path not in nested]
    around = [store.parent for store in stores if store.name == ".git"]
    looked_at = dict.fromkeys([*_believed(roots, worked_in), *between, *around])
    locations += [location for directory in looked_at for location in _locations_of(directory)]
    locations += [GitLocation(directory / "HEAD", "bare") for directory in opened]
    runs = _run_by_git(stores)
    extra += [*runs, *reserved, *(target for path in reserved for target in find_targets(path))]
    existing = [path for path in (*reserved, *runs) if os.path.lexists(path)]
    unmade = [_first_missing(path) for path in (*reserved, *runs) if path not in existing]
    return tuple(
        WritableRoot(
            root,
            tuple(dict.fromkeys(path for path in (*own[root], *extra) if root in path.parents and path not in opened)),
            _ways(root, [*([home] if home else []), *roots, *existing]),
            tuple(dict.fromkeys(path for path in unmade if root in path.parents)),
            tuple(dict.fromkeys(location for location in locations if root in location.path.parents)),
            names=(*PROTECTED_NAMES, *further),
            unread=tuple(dict.fromkeys(unread)),
        )
        for root in roots
    )


def _believed(roots: Sequence[Path], worked_in: Sequence[Path]) -> list[Path]:
    """The roots that the user's own git looks into: of the temporary ones those that hold one that is worked in."""
    return [root for root in roots if root in worked_in or any(root in directory.parents for directory in worked_in)]


def _locations_of(directory: Path) -> list[GitLocation]:
    return [GitLocation(directory / ".git", "repository"), GitLocation(directory / "HEAD", "bare")]


def _stores(worked_in: Sequence[Path], dot_gits: Sequence[Path], closed: Sequence[Path] | None) -> list[Path]:
    """The git directories that can be written: those that are worked in, and those of repositories unless `closed`.

    With them can be written those of their submodules and linked worktrees.
    """
    stores = [root for root in worked_in if is_git_directory(root) and not os.path.lexists(root / ".git")]
    found = [] if closed is None else find_stores(dot_gits)
    return stores + [store for store in found if not _is_closed(store, closed or (), worked_in)]


def _run_by_git(stores: Iterable[Path]) -> list[Path]:
    """The protected paths of git directories that can be written, there or not."""
    runs = [path for store in stores for path in run_by_git(store)]
    # Without its `HEAD` a `.git` is none, and git looks at the directory it is in.
    return runs + [path for store in stores if store.name == ".git" for path in _bare_paths(store.parent)]


def _repositories(dot_gits: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """The git directory and the top of every repository that is known."""
    for path in dot_gits:
        yield from ((git, path.parent) for git in (find_targets(path) or [path]))


def _profiles(env: Mapping[str, str], protected: Sequence[str], worked_in: Sequence[Path]) -> list[Path]:
    """Shell profiles and the like: those that exist, and in a home that is worked in those that are missing."""
    paths = [Path(real_path(expand_home(name, env))) for name in protected if name.startswith("~/")]
    return [path for path in paths if os.path.lexists(path) or _is_below(path.parent, worked_in)]


def _named_locations(dot_gits: Sequence[Path], env: Mapping[str, str], unread: list[str]) -> list[GitLocation]:
    """What settings of git name: directories of hooks, included files, the `.git` of submodules."""
    locations: list[GitLocation] = []
    for git, work in _repositories(dot_gits):
        locations += [GitLocation(_at_real_path(path), "hooks") for path in hook_directories(git, work, env)]
        modules = submodule_directories(git, work, unread)
        locations += [GitLocation(_at_real_path(path / ".git"), "repository") for path in modules]
        files = [path for file in included_files(git, env, unread) for path in (_at_real_path(file), *leads_to(file))]
        locations += [GitLocation(path, "settings") for path in files]
    return list(dict.fromkeys(locations))


def _user_settings(env: Mapping[str, str], profiles: Sequence[Path]) -> list[GitLocation]:
    """The user's own settings of git, as far as they are among the profiles."""
    paths = [_at_real_path(path) for path in user_configs(env)]
    return [GitLocation(path, "settings") for path in paths if _is_below(path, profiles)]


def _at_real_path(path: Path) -> Path:
    """The path without links on the way to it."""
    return next(iter(leads_to(path.parent)), path.parent) / path.name


def _first_missing(path: Path) -> Path:
    """The path, or the highest directory above it that is missing: who makes that one makes all."""
    missing = [ancestor for ancestor in (path, *path.parents) if not os.path.lexists(ancestor)]
    return missing[-1] if missing else path


def _ways(root: Path, paths: Iterable[Path]) -> tuple[Path, ...]:
    """The directories between a root and the places inside it."""
    return tuple(dict.fromkeys(directory for path in paths for directory in path.parents if root in directory.parents))


def _is_closed(store: Path, closed: Sequence[Path], worked_in: Sequence[Path]) -> bool:
    """Whether a git directory lies in a closed path, and not in a directory below that which is worked in."""
    return any(
        store.is_relative_to(path) and not any(path in root.parents and root in store.parents for root in worked_in)
        for path in closed
    )


def _is_below(directory: Path, paths: Iterable[Path]) -> bool:
    return any(directory.is_relative_to(path) for path in paths)


def _of_bare(directory: Path) -> list[Path]:
    """Paths that git runs or reads in a bare repository, existing or not; else the `HEAD` that would make it one.

    Empty if the directory has a `.git` with a repository: git looks no further.
    """
    return [] if has_git(directory) else _bare_paths(directory)


def _bare_paths(directory: Path) -> list[Path]:
    return run_by_git(directory) if is_head(directory / "HEAD") else [directory / "HEAD"]


def _directories(paths: Iterable[Path]) -> list[Path]:
    real = [Path(real_path(path)) for path in paths]
    return [path for path in dict.fromkeys(real) if is_directory(path)]


def _above(root: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """Protected paths of the directories between `root` and another root that holds it, which are writable through
    that.

    `.git` is one there or not, and so is what `_of_bare` finds: git would believe them in `root`.
    """
    for directory in root.parents:
        if any(directory != other and directory.is_relative_to(other) for other in roots):
            yield from (
                directory / name for name in PROTECTED_NAMES if name == ".git" or os.path.lexists(directory / name)
            )
            yield from _of_bare(directory)

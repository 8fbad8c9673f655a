"""Which paths a policy lets commands write, and which paths inside those stay read-only.

Read-only inside every root are `.git`, `.codex` and `.agents`: files in them are later run or trusted outside the
sandbox. That goes for the ones at the top whether or not they exist, for those of the directories above the
working directory, for those found below it, for where a `.git` file points, for what git runs of a root that is a
repository itself, for the directories of hooks and the files that a repository's settings name, and for the other names
that their files have as hard links. CODEX_HOME is protected too, wherever it lies: it holds the rules and settings
that restrict commands. The user's settings add names of files of other programs, whether or not they exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import is_directory, is_file, is_lasting, is_there, real_path
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
from codex_py.sandbox.git_settings import (
    first_line,
    hook_directories,
    included_files,
    leads_to,
    submodule_directories,
)
from codex_py.sandbox.protected_names import NestedNames, other_names

PROTECTED_NAMES: Final = (".git", ".codex", ".agents")

# Protected where they are, and not kept from being made: Mercurial takes an empty one for a repository.
_FOUND_ONLY: Final = (".hg",)

# git takes a directory with such a `HEAD` for a repository without a working tree.
_VALID_HEAD: Final = r"ref:|[0-9a-f]{40}"

# Of the user's home, read as files.
_PROFILES: Final = frozenset(
    (".bash_profile", ".bash_login", ".profile", ".bashrc", ".zshrc", ".zshenv", ".zprofile", ".gitconfig")
)

# Of our home, what others may have a hard link to and must not write through it.
_SETTINGS: Final = ("config.toml", "rules")


class WritableRoot(Value):
    """A directory commands may write below, and the paths inside it they may not; all real paths.

    The first ones of `protected` are the root's own three names, there or not. `ways` are the directories that lead to
    our home, to other roots and to the `reserved` paths: they can be worked in, and neither renamed nor removed, or
    another directory could be put in the place of those. Of the protected paths, missing ones of `reserved` must not be
    made, nor those of `reserved_files`, which are read as files. `unheld` are missing ones in whose place nothing may
    stand, because git or other programs would take that for something. `names` are protected wherever they are found
    below. `unread` are lines for the user about what was too large to be looked through. `is_temporary` says that
    nobody works there.
    """

    path: Path
    protected: tuple[Path, ...] = ()
    ways: tuple[Path, ...] = ()
    reserved: tuple[Path, ...] = ()
    reserved_files: tuple[Path, ...] = ()
    unheld: tuple[Path, ...] = ()
    names: tuple[str, ...] = PROTECTED_NAMES
    unread: tuple[str, ...] = ()
    is_temporary: bool = False


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
    reserved = [path for path in _reserved(dot_gits, env, unread) if not _is_below(path, held)]
    profiles = [path for path in _profiles(env, protected, worked_in) if not _is_below(path, held)]
    included = [path for path in _included(dot_gits, env, unread) if not _is_below(path, held)]
    # A missing file in a missing directory is kept from being made with that.
    files = [path for path in profiles if path.name in _PROFILES]
    files = [path for path in (*included, *files) if _first_missing(path) == path]
    reserved += [root / name for root in worked_in for name in protected if "/" not in name and name not in _FOUND_ONLY]
    reserved += [_first_missing(path) for path in (*included, *profiles) if path not in files]
    runs = _run_by_git(stores)
    directories = dict.fromkeys([*roots, *(path.parent for path in found if path not in nested)])
    unheld = [*(path for directory in directories for path in _unheld(directory)), *filter(_is_missing, runs)]
    extra += [*runs, *profiles, *reserved, *files, *(target for path in reserved for target in find_targets(path))]
    return tuple(
        WritableRoot(
            root,
            tuple(dict.fromkeys(path for path in (*own[root], *extra) if root in path.parents and path not in opened)),
            _ways(root, [*([home] if home else []), *roots, *reserved, *files, *profiles, *runs]),
            tuple(dict.fromkeys(path for path in reserved if root in path.parents)),
            tuple(path for path in files if root in path.parents),
            unheld=tuple(path for path in dict.fromkeys(unheld) if root in path.parents),
            names=(*PROTECTED_NAMES, *further),
            unread=tuple(dict.fromkeys(unread)),
            is_temporary=root not in worked_in,
        )
        for root in roots
    )


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
    return [path for path in paths if not _is_missing(path) or _is_below(path.parent, worked_in)]


def _reserved(dot_gits: Sequence[Path], env: Mapping[str, str], unread: list[str]) -> list[Path]:
    """Paths that must not be created either: directories of hooks, the `.git` of submodules."""
    reserved: list[Path] = []
    for git, work in _repositories(dot_gits):
        reserved += [_first_missing(directory) for directory in hook_directories(git, work, env)]
        reserved += [_first_missing(directory / ".git") for directory in submodule_directories(git, work, unread)]
    return list(dict.fromkeys(reserved))


def _included(dot_gits: Sequence[Path], env: Mapping[str, str], unread: list[str]) -> list[Path]:
    files = [file for git, _ in _repositories(dot_gits) for file in included_files(git, env, unread)]
    return [path for file in files for path in dict.fromkeys([file, *leads_to(file)])]


def _first_missing(path: Path) -> Path:
    """The path, or the highest directory above it that is missing: who makes that one makes all."""
    missing = [ancestor for ancestor in (path, *path.parents) if _is_missing(ancestor)]
    return missing[-1] if missing else path


def _is_missing(path: Path) -> bool:
    """Whether nothing is there, or only what this or another session has put there."""
    return not is_lasting(path)


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
    if is_file(directory / ".git") or os.path.lexists(directory / ".git" / "HEAD"):
        return []
    return _bare_paths(directory)


def _bare_paths(directory: Path) -> list[Path]:
    head = directory / "HEAD"
    is_valid = os.path.islink(head) or (is_file(head) and re.match(_VALID_HEAD, first_line(head)))  # noqa: PTH114
    return run_by_git(directory) if is_valid else [head]


def _unheld(directory: Path) -> list[Path]:
    """Missing paths that would make git read settings from a directory, and that cannot have a placeholder.

    Below a repository, an empty `.git` makes ripgrep and others pass over the ignore files above, and with any `HEAD`,
    `git diff HEAD` is ambiguous. In a repository without a working tree, git fails at an empty `commondir`.
    """
    believed = _of_bare(directory)
    if any(is_lasting(parent / ".git") and is_there(parent / ".git") for parent in directory.parents):
        believed += [directory / ".git"]
    else:
        believed = [path for path in believed if path.name != "HEAD"]
    return [path for path in believed if _is_missing(path)]


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

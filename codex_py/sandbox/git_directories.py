"""Git directories that commands may write, and what stays as it is in them: what makes git run programs.

Everything else there is data: objects, refs, the index, the state of an unfinished merge.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from codex_py.paths import is_directory, is_file
from codex_py.sandbox.git_settings import first_line, leads_to, own_settings

# What git runs in a git directory, or takes settings and the addresses of other repositories from.
RUN_BY_GIT: Final = ("config", "config.worktree", "hooks", "commondir", "remotes", "branches")
# Where a git directory keeps those of its submodules and of its linked worktrees.
_INNER: Final = ("modules", "worktrees")
_MAX_DIRECTORIES: Final = 2_000
_FALSE: Final = ("false", "no", "off", "0")


def is_git_directory(path: Path) -> bool:
    """Whether git would take a directory for a repository, or for that of a linked worktree."""
    return os.path.lexists(path / "HEAD") and (
        os.path.lexists(path / "commondir") or (is_directory(path / "objects") and is_directory(path / "refs"))
    )


def git_directories_in(git: Path) -> Iterator[Path]:
    """A git directory, and those of its submodules and linked worktrees, at any depth. Links are not followed."""
    yield git
    waiting = [git / name for name in _INNER]
    for _ in range(_MAX_DIRECTORIES):
        if not waiting:
            return
        directory = waiting.pop()
        if is_git_directory(directory):
            yield directory
            waiting += [directory / name for name in _INNER]
            continue
        # The name of a submodule may have slashes.
        waiting += _directories_in(directory)


def all_git_directories(paths: Iterable[Path]) -> list[Path]:
    """Those of these paths, and of what these `.git` lead to, that are git directories, with those in them."""
    targets = dict.fromkeys(target for path in paths for target in find_targets(path) or [path])
    return [git for target in targets if is_git_directory(target) for git in git_directories_in(target)]


def run_by_git(git: Path) -> list[Path]:
    """The protected paths of a git directory and of those in it, there or not."""
    return [directory / name for directory in git_directories_in(git) for name in RUN_BY_GIT]


def dot_gits_around(directories: Iterable[Path]) -> list[Path]:
    """The `.git` that git uses in each of these directories: its own, or the next one above it."""
    found = (
        next(filter(os.path.lexists, (top / ".git" for top in (directory, *directory.parents))), None)
        for directory in directories
    )
    return [path for path in dict.fromkeys(found) if path is not None]


def find_stores(dot_gits: Iterable[Path]) -> list[Path]:
    """The git directories that commits write in the working trees of these `.git`, those in another one left out."""
    found = list(dict.fromkeys(filter(None, map(_own_store, dot_gits))))
    inner = {directory for store in found for directory in git_directories_in(store) if directory != store}
    return [store for store in found if store not in inner]


def _own_store(dot_git: Path) -> Path | None:
    """The git directory behind a `.git`; that of the main repository for a linked worktree.

    None where a `.git` file leads to the git directory of another working tree: such a file can come with any archive.
    """
    targets = find_targets(dot_git) or [dot_git]
    if not all(map(is_git_directory, targets)):
        return None
    git, store = targets[0], targets[-1]
    if git == dot_git:
        return git
    if git != store:
        is_linked = git.parent == store / "worktrees"
        return store if is_linked and leads_to(git / first_line(git / "gitdir")) == leads_to(dot_git) else None
    settings = own_settings(git)
    if "core.worktree" in settings:
        return git if leads_to(git / settings["core.worktree"]) == leads_to(dot_git.parent) else None
    return git if git.name != ".git" and settings.get("core.bare", "false").lower() in _FALSE else None


def find_targets(path: Path) -> list[Path]:
    """Where a protected path leads: through a symbolic link, or from a `.git` file to the repository it stands for."""
    if os.path.islink(path):  # noqa: PTH114
        return leads_to(path)
    if path.name != ".git" or not is_file(path):
        return []
    pointer = first_line(path)
    if not pointer.startswith("gitdir:"):
        return []
    targets = leads_to(path.parent / pointer.removeprefix("gitdir:").strip())
    shared = first_line(targets[0] / "commondir") if targets else ""
    return [*targets, *leads_to(targets[0] / shared)] if shared else targets


def _directories_in(directory: Path) -> list[Path]:
    if directory.is_symlink():
        return []
    try:
        with os.scandir(directory) as listing:
            return [Path(entry.path) for entry in listing if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []

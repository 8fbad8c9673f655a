"""Git directories that commands may write, and what stays as it is in them: what makes git run programs.

Everything else there is data: objects, refs, the index, the state of an unfinished merge.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from codex_py.paths import is_directory

# What git runs in a git directory, or takes settings and the addresses of other repositories from.
RUN_BY_GIT: Final = ("config", "config.worktree", "hooks", "commondir", "remotes", "branches")
# Where a git directory keeps those of its submodules and of its linked worktrees.
_INNER: Final = ("modules", "worktrees")
_MAX_DIRECTORIES: Final = 2_000


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


def run_by_git(git: Path) -> list[Path]:
    """The protected paths of a git directory and of those in it, there or not."""
    return [directory / name for directory in git_directories_in(git) for name in RUN_BY_GIT]


def _directories_in(directory: Path) -> list[Path]:
    if directory.is_symlink():
        return []
    try:
        with os.scandir(directory) as listing:
            return [Path(entry.path) for entry in listing if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []

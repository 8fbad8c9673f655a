"""Finds the root of a project, and whether the user trusts it.

Trust is keyed by the real path of the git root. A worktree has its main checkout's trust only when that checkout's
own `.git` names the worktree, because anybody can create a `.git` file that names a trusted checkout.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.config.files import read_regular
from codex_py.config.value_types import expand_home
from codex_py.paths import is_file
from codex_py.paths import real_path as real_name
from codex_py.protocol.encoding import as_object

Trust: TypeAlias = Literal["trusted", "untrusted", "unknown"]

_POINTER_BYTES: Final = 4096


def real_path(path: Path) -> Path:
    """The path without links, whether it exists or not."""
    return Path(real_name(path))


def find_root(directory: Path, markers: Sequence[str]) -> Path | None:
    """The nearest directory from `directory` upwards that has one of the markers."""
    if not markers:
        return None
    for candidate in (directory, *directory.parents):
        if any(_has_marker(candidate, marker) for marker in markers):
            return candidate
    return None


class TrustList:
    """The trust levels in the user's layers (`[projects."<directory>"]`)."""

    def __init__(self, projects: Mapping[str, Any], home: str) -> None:
        self._levels: dict[str, Trust] = {}
        for directory, entry in projects.items():
            level = as_object(entry).get("trust_level")
            if level == "trusted" or level == "untrusted":
                self._levels[os.path.normpath(expand_home(directory, home))] = level

    def of(self, directory: Path, project_root: Path | None) -> Trust:
        """The trust of a real path: its own entry, or the nearest one up to its git root or project root."""
        for candidate in _scope(directory, project_root):
            level = self._levels.get(str(candidate))
            if level is not None:
                return level
        root = find_root(directory, (".git",))
        checkout = main_checkout(root) if root is not None else None
        return self._levels.get(str(checkout), "unknown")


def main_checkout(root: Path) -> Path | None:
    """The checkout a git worktree belongs to, None when it is no worktree or the checkout does not know it."""
    pointer = _read_pointer(root / ".git")
    if pointer is None or not pointer.startswith("gitdir:"):
        return None
    git_dir = real_path(root / pointer.removeprefix("gitdir:").strip())
    store = git_dir.parent.parent
    if git_dir.parent.name != "worktrees" or store.name != ".git":
        return None
    back = _read_pointer(git_dir / "gitdir")
    if back is None or real_path(git_dir / back) != real_path(root) / ".git":
        return None
    return store.parent


def _has_marker(directory: Path, marker: str) -> bool:
    path = directory / marker
    # An empty `.git` directory is no repository: the sandbox of another program may leave one.
    return os.path.lexists(path / "HEAD") or is_file(path) if marker == ".git" else os.path.lexists(path)


def _scope(directory: Path, project_root: Path | None) -> Iterator[Path]:
    """The directories whose entry counts for `directory`, nearest first."""
    roots = {find_root(directory, (".git",)), project_root} - {None}
    inside = [root for root in roots if root is not None and directory.is_relative_to(root)]
    top = min(inside, key=lambda root: len(root.parts), default=directory)
    for candidate in (directory, *directory.parents):
        yield candidate
        if candidate == top:
            return


def _read_pointer(path: Path) -> str | None:
    """The first line of a small regular file that holds a path."""
    try:
        raw = read_regular(path, _POINTER_BYTES, follow=False)
    except OSError:
        return None
    line = os.fsdecode(raw).partition("\n")[0].strip()
    return None if "\0" in line or not line else line

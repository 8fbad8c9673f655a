"""Checks installed skills against their records, with git's word on what the project has committed."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from codex_py.errors import UserError
from codex_py.services.git import GitReader
from codex_py.skills.trust import ConsentCheck


def consent_check(home: Path, env: Mapping[str, str]) -> ConsentCheck:
    """The check of a session or command; `home` is CODEX_HOME."""

    def changed_outside(root: Path, directories: Sequence[Path]) -> Collection[Path]:
        return changed_outside_history(root, directories, env)

    return ConsentCheck(home, changed_outside)


def changed_outside_history(root: Path, directories: Sequence[Path], env: Mapping[str, str]) -> Collection[Path]:
    """The directories with files that differ from the last commit of the repository around `root`.

    Without a repository, or where git cannot be asked, all of them: what nobody vouches for is not committed.
    """
    git = GitReader(root, env)
    try:
        top = git.root
        if top is None:
            return directories
        real = Path(os.path.realpath(top))
        inner = {directory: directory.relative_to(real).as_posix() for directory in directories}
        specs = [f":(top,literal){path}" for path in inner.values()]
        found = git.ask(
            "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignored", "--", *specs
        )
    except (UserError, ValueError):
        return directories
    if found.status:
        return directories
    lines = found.out.decode("utf-8", "surrogateescape").split("\0")
    changed = [line[3:].rstrip("/") for line in lines if line and "__pycache__" not in line.split("/")]
    return [
        directory
        for directory, path in inner.items()
        if any(name == path or name.startswith(f"{path}/") or path.startswith(f"{name}/") for name in changed)
    ]

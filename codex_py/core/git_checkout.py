"""What a rollout says about the repository, read from git's files: starting git would double the start-up."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Final

from codex_py.paths import is_folder, is_there
from codex_py.rollout.format import GitState

_MOST_BYTES: Final = 1 << 20
_HASH: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_ORIGIN_URL: Final = re.compile(r'^\[remote "origin"\][^\[]*?^\s*url\s*=\s*(\S+)', re.MULTILINE)


def read_git_state(cwd: Path) -> GitState | None:
    """Commit, branch and origin of the checkout around `cwd`; None outside of one, and for what cannot be read."""
    pointer = next((folder / ".git" for folder in (cwd, *cwd.parents) if is_there(folder / ".git")), None)
    if pointer is None:
        return None
    own = _git_dir(pointer)
    common = own / _read(own / "commondir").strip() if is_there(own / "commondir") else own
    head = _read(own / "HEAD").strip()
    reference = head.removeprefix("ref: ")
    commit = head if reference == head else _resolve(common, reference)
    origin = _ORIGIN_URL.search(_read(common / "config"))
    return GitState(
        commit_hash=commit if commit and _HASH.match(commit) else None,
        branch=reference.removeprefix("refs/heads/") if reference.startswith("refs/heads/") else None,
        repository_url=_without_password(origin[1]) if origin else None,
    )


def _git_dir(pointer: Path) -> Path:
    """A `.git` folder, or the one that the `.git` file of a worktree or submodule names."""
    if is_folder(pointer):
        return pointer
    return pointer.parent / _read(pointer).removeprefix("gitdir:").strip()


def _resolve(common: Path, reference: str) -> str | None:
    if loose := _read(common / reference).strip():
        return loose
    packed = re.search(rf"^(\S+) {re.escape(reference)}$", _read(common / "packed-refs"), re.MULTILINE)
    return packed[1] if packed else None


def _without_password(url: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _read(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(_MOST_BYTES).decode(errors="replace")

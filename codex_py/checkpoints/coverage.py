"""Whether what a command may take away could be brought back, by the checkpoint of the running turn."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from codex_py.checkpoints.entries import Entry
from codex_py.checkpoints.snapshot import Snapshot
from codex_py.checkpoints.store import Missing
from codex_py.shell.command_line import PossibleLoss

_MAX_FILES: Final = 50_000


def why_lost(snapshot: Snapshot, moment: float, loss: PossibleLoss) -> str | None:
    """Why it could not be brought back, as a clause; None when it could. `moment` is when the snapshot was begun.

    What was made since then is the turn's own, and none of the files that /undo promises.
    """
    parent, name = os.path.split(loss.path.rstrip("/"))
    path = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118
    root = max((root for root in snapshot.roots if path == root or path.startswith(f"{root}/")), key=len, default=None)
    if root is None:
        return f"`{path}` lies outside of what its checkpoint covers"
    if snapshot.is_partial(root):
        return f"its checkpoint does not cover all files of `{root}`"
    try:
        files = snapshot.files(root)
    except Missing:
        return "its checkpoint is damaged"
    if loss.by_git:
        uncovered = next((name for name, entry in files.items() if entry and not entry.is_covered), None)
        return _not_covered(uncovered) if uncovered else None
    return _why_lost_below(path, root, files, moment)


def _why_lost_below(path: str, root: str, files: dict[bytes, Entry | None], moment: float) -> str | None:
    for number, found in enumerate(_files_below(path)):
        inside = os.fsencode(found[len(root) + 1 :])
        if ".git" in found[len(root) :].split("/"):
            return f"`{os.path.dirname(found)}` is part of a repository"  # noqa: PTH120
        if number >= _MAX_FILES:
            return f"there are more than {_MAX_FILES:,} files in it"
        entry = files.get(inside)
        if entry is not None and entry.is_covered:
            continue
        if entry is not None or os.lstat(found).st_ctime < moment:
            return _not_covered(inside)
    return None


def _not_covered(path: bytes) -> str:
    return f"`{os.fsdecode(path)}` is ignored by git, or too large to be stored: it could not be brought back"


def _files_below(path: str) -> Iterator[str]:
    if os.path.islink(path) or not os.path.isdir(path):  # noqa: PTH112, PTH114
        if os.path.lexists(path):
            yield path
        return
    for directory, inner, names in os.walk(path):
        links = [name for name in inner if os.path.islink(f"{directory}/{name}")]  # noqa: PTH114
        if os.path.lexists(f"{directory}/.git"):
            yield f"{directory}/.git/HEAD"
        inner[:] = [name for name in inner if name != ".git"]
        yield from (f"{directory}/{name}" for name in (*names, *links))

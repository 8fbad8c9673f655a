"""The changes of a working tree since its last commit, and applying a patch of the user to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.errors import UserError
from codex_py.protocol.events import FileChange
from codex_py.services.git import GitReader, NotARepository
from codex_py.text.diff import MAX_DIFF_BYTES, unified_diff
from codex_py.text.files import FileRefused, read_below
from codex_py.tools.patching import patch_files

_MAX_BYTES: Final = 4 * 1024 * 1024
_MAX_NEW_FILES: Final = 500
_NEW_FILE_BYTES: Final = 256 * 1024
_SECTION: Final = re.compile(r"^diff --git .*\n", re.MULTILINE)
_BODY: Final = re.compile(r"^(--- |Binary files |GIT binary patch)", re.MULTILINE)
_OPTIONS: Final = ("--find-renames",)


def working_changes(git: GitReader, may_read: Callable[[Path], bool] = bool) -> tuple[FileChange, ...]:
    """Staged, unstaged and untracked changes by absolute path, in git's order, the untracked ones last.

    Later files of very long diffs have no diff, and so have files that `may_read` denies. Raises `NotARepository`, and
    `UserError` when git fails. Blocks, so call it in a thread.
    """
    root = git.root
    if root is None:
        raise NotARepository(f"`{git.cwd}` is not in a git repository")
    with git.shared_start():
        # Before the first commit there is the empty tree to compare with.
        head = git.lines("rev-parse", "--verify", "--quiet", "HEAD")
        base = head[0] if head else _answer(git, "hash-object", "-t", "tree", "/dev/null").strip()
        names = [name for name in _answer(git, "diff", *_OPTIONS, "--name-status", "-z", base).split("\0") if name]
        sections = _SECTION.split(_answer(git, "diff", *_OPTIONS, base)[:_MAX_BYTES])[1:]
        new = git.lines("ls-files", "--others", "--exclude-standard", "-z", separator="\0")
    tracked = [
        change if _is_readable(change, may_read) else change.replace(diff="")
        for change in _tracked(root, names, sections)
    ]
    return (*tracked, *_untracked(root, new, may_read))


def _is_readable(change: FileChange, may_read: Callable[[Path], bool]) -> bool:
    return all(map(may_read, filter(None, (change.path, change.move_path))))


def _answer(git: GitReader, *arguments: str) -> str:
    answered = git.ask(*arguments)
    if answered.status:
        raise UserError(f"git cannot tell the changes: {answered.complaint}")
    return answered.out.decode("utf-8", "surrogateescape")


def _tracked(root: Path, names: Sequence[str], sections: Sequence[str]) -> list[FileChange]:
    changes: list[FileChange] = []
    fields = iter(names)
    for status in fields:
        path = root / next(fields, "")
        target = root / next(fields, "") if status[0] in "RC" else None
        section = sections[len(changes)] if len(changes) < len(sections) else ""
        found = _BODY.search(section)
        diff = _printable(section[found.start() :]) if found else ""
        changes.append(FileChange(path, _change_type(status[0]), target, _cut(diff)))
    return changes


def _untracked(root: Path, names: Sequence[str], may_read: Callable[[Path], bool]) -> list[FileChange]:
    return [
        FileChange(root / name, "add", diff=_new_file(root, name) if may_read(root / name) else "")
        for name in names[:_MAX_NEW_FILES]
    ]


def _new_file(root: Path, name: str) -> str:
    """The diff of an untracked file; empty for what is not a file, or is reached through a link."""
    try:
        raw = read_below(root, name, _NEW_FILE_BYTES).raw
    except (OSError, FileRefused):
        return ""
    if b"\0" in raw:
        return f"Binary files /dev/null and b/{name} differ\n"
    return unified_diff("", raw.decode("utf-8", "replace"), old_name="/dev/null", new_name=f"b/{name}")


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _cut(diff: str) -> str:
    if len(diff) <= MAX_DIFF_BYTES:
        return diff
    return f"{diff[: diff.rfind(chr(10), 0, MAX_DIFF_BYTES) + 1]}[the rest of this diff is left out]\n"


def _change_type(status: str) -> Literal["add", "delete", "update"]:
    return "add" if status in "AC" else "delete" if status == "D" else "update"


def apply_patch_by_hand(raw: bytes, cwd: Path) -> str:
    """Apply a patch to the files below `cwd`, whole or not at all; the summary. Raises `ToolError` otherwise."""
    return patch_files(raw, cwd)

"""The changes of a working tree since its last commit, whoever made them: for `/diff`."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.core.git_program import ask_git, git_lines
from codex_py.errors import UserError
from codex_py.protocol.events import FileChange
from codex_py.text.diff import MAX_DIFF_BYTES, unified_diff

_MOST_BYTES: Final = 4 * 1024 * 1024
_MOST_NEW_FILES: Final = 500
_NEW_FILE_BYTES: Final = 256 * 1024
_SECTION: Final = re.compile(r"^diff --git .*\n", re.MULTILINE)
_BODY: Final = re.compile(r"^(--- |Binary files |GIT binary patch)", re.MULTILINE)
_OPTIONS: Final = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--ignore-submodules=dirty")


def working_changes(cwd: Path) -> tuple[FileChange, ...]:
    """Staged, unstaged and untracked changes by absolute path, in the order git has them, the untracked ones last.

    Of very long diffs the later files do without. Blocks: for a thread. Raises `UserError` outside of a repository
    and when git does not answer.
    """
    top = git_lines(cwd, ["rev-parse", "--show-toplevel"])
    if not top:
        raise UserError(
            f"`{cwd}` is not in a git repository", hint="the changes of this session are known all the same"
        )
    root = Path(top[0])
    # Before the first commit there is the empty tree to compare with.
    [base] = git_lines(root, ["rev-parse", "--verify", "--quiet", "HEAD"]) or git_lines(
        root, ["hash-object", "-t", "tree", "/dev/null"]
    )
    names = git_lines(root, ["diff", *_OPTIONS, "--name-status", "-z", base], separator="\0")
    return (*_tracked(root, names, _sections(root, base)), *_untracked(root))


def _sections(root: Path, base: str) -> list[str]:
    """The diffs of the files, in the order of their names."""
    try:
        answer = ask_git(root, "diff", *_OPTIONS, base)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise UserError(f"cannot ask git for the changes: {error}") from error
    text = answer.stdout[:_MOST_BYTES].decode("utf-8", "replace")
    return _SECTION.split(text)[1:]


def _tracked(root: Path, names: Sequence[str], sections: Sequence[str]) -> list[FileChange]:
    changes: list[FileChange] = []
    fields = iter(names)
    for status in fields:
        path = root / next(fields, "")
        target = root / next(fields, "") if status[0] in "RC" else None
        section = sections[len(changes)] if len(changes) < len(sections) else ""
        found = _BODY.search(section)
        diff = section[found.start() :] if found else ""
        changes.append(FileChange(path, _kind(status[0]), target, _cut(diff)))
    return changes


def _untracked(root: Path) -> list[FileChange]:
    names = git_lines(root, ["ls-files", "--others", "--exclude-standard", "-z"], separator="\0")
    return [FileChange(root / name, "add", diff=_new_file(root, name)) for name in names[:_MOST_NEW_FILES]]


def _new_file(root: Path, name: str) -> str:
    """The diff of a file that git does not know; empty for what is no text, or no file."""
    try:
        descriptor = os.open(root / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        raw = file.read(_NEW_FILE_BYTES)
    if b"\0" in raw:
        return f"Binary files /dev/null and b/{name} differ\n"
    return unified_diff("", raw.decode("utf-8", "replace"), old_name="/dev/null", new_name=f"b/{name}")


def _cut(diff: str) -> str:
    if len(diff) <= MAX_DIFF_BYTES:
        return diff
    return f"{diff[: diff.rfind(chr(10), 0, MAX_DIFF_BYTES) + 1]}[the rest of this diff is left out]\n"


def _kind(status: str) -> Literal["add", "delete", "update"]:
    return "add" if status in "AC" else "delete" if status == "D" else "update"

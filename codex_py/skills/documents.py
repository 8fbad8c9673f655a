"""The files of a skill that the search index reads: its `SKILL.md`, its references, and the names of the rest.

A reference is a text file beside `SKILL.md` or in a directory below it that is not itself a skill.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.digest import stamp_of
from codex_py.skills.model import Skill
from codex_py.skills.scan import SKILL_FILE, SKIPPED_DIRECTORIES
from codex_py.text.files import FileRefused, read_inside

MAX_TEXT_BYTES: Final = 256 * 1024
_ENDINGS: Final = (".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org")
_MAX_REFERENCES: Final = 200
_MAX_OTHERS: Final = 200
_MAX_ENTRIES: Final = 2000
_MAX_DEPTH: Final = 4
_LICENSES: Final = ("license", "licence", "notice", "copying")


class SkillFiles(NamedTuple):
    """The files of a skill, relative to its directory, in order; `stamp` changes when one of them does."""

    stamp: str
    references: tuple[str, ...]
    others: tuple[str, ...]


def find_files(skill: Skill, may_read: Callable[[Path], bool] = bool) -> SkillFiles:
    """Look at the directory of a skill: at most 200 references and the names of 200 other files, 4 levels deep.

    Links, hidden files and what `may_read` denies are left out.
    """
    top = str(skill.directory)
    stamps: list[str] = [stamp_of(str(skill.canonical_path))]
    references: list[str] = []
    others: list[str] = []
    queue: list[tuple[str, int]] = [("", 0)]
    left = _MAX_ENTRIES
    for prefix, depth in queue:
        for name, is_directory, stamp in _entries(f"{top}/{prefix}"):
            left -= 1
            if left < 0:
                break
            relative = f"{prefix}{name}"
            if is_directory:
                is_own = depth < _MAX_DEPTH and name not in SKIPPED_DIRECTORIES
                if is_own and not os.path.lexists(f"{top}/{relative}/{SKILL_FILE}"):
                    queue.append((f"{relative}/", depth + 1))
            elif name == SKILL_FILE or name.lower().startswith(_LICENSES):
                continue
            elif name.lower().endswith(_ENDINGS):
                if len(references) < _MAX_REFERENCES and may_read(Path(f"{top}/{relative}")):
                    references.append(relative)
                    stamps.append(f"{relative} {stamp}")
            elif len(others) < _MAX_OTHERS and not relative.startswith("agents/"):
                others.append(relative)
    return SkillFiles("\n".join(stamps), tuple(sorted(references)), tuple(sorted(others)))


def read_text(skill: Skill, file: str, max_bytes: int = MAX_TEXT_BYTES) -> str:
    """The beginning of a file of the skill; "" if it is binary or cannot be read."""
    try:
        head = read_inside(skill.directory, file, max_bytes)
    except FileRefused:
        return ""
    if head is None or b"\0" in head.raw:
        return ""
    return head.raw.decode("utf-8", "replace").replace("\r\n", "\n")


def _entries(directory: str) -> list[tuple[str, bool, str]]:
    """Name, whether it is a directory, and size and time of what may be a reference; links and hidden ones left out."""
    found: list[tuple[str, bool, str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.name[0] == "." or len(found) >= _MAX_ENTRIES:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, True, ""))
                elif entry.is_file(follow_symlinks=False):
                    stamp = ""
                    if entry.name.lower().endswith(_ENDINGS):
                        status = entry.stat(follow_symlinks=False)
                        stamp = f"{status.st_size} {status.st_mtime_ns}"
                    found.append((entry.name, False, stamp))
    except OSError:
        return []
    return sorted(found)

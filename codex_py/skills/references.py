"""The text files beside a `SKILL.md`, what is read of them, and the table of contents that follows the skill."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.model import Skill
from codex_py.skills.scan import SKILL_FILE, SKIPPED_DIRECTORIES
from codex_py.text.files import FileRefused, read_inside
from codex_py.text.sanitize import sanitize_line

REFERENCES: Final = "skill_references"
_MAX_TEXT_BYTES: Final = 256 * 1024
_ENDINGS: Final = (".md", ".markdown", ".mdx", ".txt", ".rst", ".adoc", ".org")
_LICENSES: Final = ("license", "licence", "notice", "copying")
_MAX_REFERENCES: Final = 200
_MAX_ENTRIES: Final = 2000
_MAX_DEPTH: Final = 4
_MAX_LINES: Final = 40
_MAX_TITLE: Final = 80
_MAX_HEADINGS: Final = 160
_HEAD_BYTES: Final = 64 * 1024


class Reference(NamedTuple):
    """A file of a skill, relative to its directory. `stamp` is its size and the time of its last change."""

    name: str
    stamp: str


def find_references(skill: Skill, may_read: Callable[[Path], bool] = bool) -> list[Reference]:
    """The text files below the directory of a skill, in order: at most 200, at most 4 levels deep.

    Left out are links, hidden files, licences, directories that are skills themselves, and what `may_read` denies.
    """
    top = str(skill.directory)
    found: list[Reference] = []
    directories: list[tuple[str, int]] = [("", 0)]
    left = _MAX_ENTRIES
    for prefix, depth in directories:
        for entry in _entries(f"{top}/{prefix}"):
            left -= 1
            if left < 0 or len(found) == _MAX_REFERENCES:
                return sorted(found)
            name = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                is_own = depth < _MAX_DEPTH and entry.name not in SKIPPED_DIRECTORIES
                if is_own and not os.path.lexists(f"{top}/{name}/{SKILL_FILE}"):
                    directories.append((f"{name}/", depth + 1))
            elif _is_reference(entry) and may_read(Path(top, name)):
                found.append(Reference(name, file_stamp(f"{top}/{name}")))
    return sorted(found)


def _is_reference(entry: os.DirEntry[str]) -> bool:
    name = entry.name.lower()
    is_text = name.endswith(_ENDINGS) and entry.name != SKILL_FILE and not name.startswith(_LICENSES)
    return is_text and entry.is_file(follow_symlinks=False)


def _entries(directory: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            return sorted((entry for entry in entries if entry.name[0] != "."), key=lambda entry: entry.name)
    except OSError:
        return []


def file_stamp(path: str) -> str:
    """The size of a file and the time of its last change; "" for a missing one."""
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - thousands of these, before a first request
    except OSError:
        return ""
    return f"{status.st_size} {status.st_mtime_ns}"


def read_text(skill: Skill, file: str, max_bytes: int = _MAX_TEXT_BYTES) -> str:
    """The beginning of a file of the skill; "" if it is binary or cannot be read."""
    try:
        head = read_inside(skill.directory, file, max_bytes)
    except FileRefused:
        return ""
    if head is None or b"\0" in head.raw:
        return ""
    return head.raw.decode("utf-8", "replace").replace("\r\n", "\n")


def references_item(skill: Skill, references: list[Reference]) -> ResponseItem | None:
    """The table of contents of a skill's references, at most 40 lines with its tags: file, title, headings and size."""
    if not references:
        return None
    lines = [
        f"References of the skill `{one_line(skill.name)}` in `{one_line(str(skill.directory))}`; read what you need:"
    ]
    most = _MAX_LINES - 3
    shown = references if len(references) <= most else references[: most - 1]
    lines += [_reference_line(skill, reference) for reference in shown]
    if left := len(references) - len(shown):
        lines.append(f"and {left} more files")
    return message("user", "\n".join([f"<{REFERENCES}>", *lines, f"</{REFERENCES}>"]))


def _reference_line(skill: Skill, reference: Reference) -> str:
    text = read_text(skill, f"{skill.directory}/{reference.name}", _HEAD_BYTES)
    size = int(reference.stamp.partition(" ")[0] or 0)
    if size and not text:
        return f"- {one_line(reference.name)} ({size:,} bytes, not text)"
    titles = [one_line(title.strip()) for title in re.findall(r"(?m)^#{1,6}[ \t]+(\S.{0,119})", text)]
    title = shortened(titles[0], _MAX_TITLE) if titles else ""
    rest = shortened(", ".join(titles[1:]), _MAX_HEADINGS)
    about = ": ".join(part for part in (title, rest) if part)
    return f"- {one_line(reference.name)} ({size:,} bytes)" + (f" {about}" if about else "")


def shortened(text: str, length: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)].rstrip()}…"


def one_line(text: str) -> str:
    """One line that cannot end the block it is in."""
    return sanitize_line(text).replace("</", "<\\/")

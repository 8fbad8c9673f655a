"""The references of a skill as a table of contents, which follows the skill."""

from __future__ import annotations

import os
from typing import Final

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.chunks import headings_of
from codex_py.skills.documents import SkillFiles, read_text
from codex_py.skills.model import Skill
from codex_py.skills.suggest import one_line, shortened

REFERENCES: Final = "skill_references"
_MAX_LINES: Final = 40
_MAX_TITLE: Final = 80
_MAX_HEADINGS: Final = 160
_HEAD_BYTES: Final = 64 * 1024


def references_item(skill: Skill, files: SkillFiles) -> ResponseItem | None:
    """The table of contents of a skill's references, at most 40 lines with its tags: file, title, headings and size."""
    if not files.references:
        return None
    lines = [
        f"References of the skill `{one_line(skill.name)}` in `{one_line(str(skill.directory))}`; read what you need:"
    ]
    most = _MAX_LINES - 3
    shown = files.references if len(files.references) <= most else files.references[: most - 1]
    lines += [_reference_line(skill, name) for name in shown]
    if left := len(files.references) - len(shown):
        lines.append(f"and {left} more files")
    return message("user", "\n".join([f"<{REFERENCES}>", *lines, f"</{REFERENCES}>"]))


def _reference_line(skill: Skill, name: str) -> str:
    path = f"{skill.directory}/{name}"
    text = read_text(skill, path, _HEAD_BYTES)
    size = _size_of(path)
    if size and not text:
        return f"- {one_line(name)} ({size:,} bytes, not text)"
    titles = [one_line(heading.title) for heading in headings_of(text)]
    title = shortened(titles[0], _MAX_TITLE) if titles else ""
    rest = shortened(", ".join(titles[1:]), _MAX_HEADINGS)
    about = ": ".join(part for part in (title, rest) if part)
    return f"- {one_line(name)} ({size:,} bytes)" + (f" {about}" if about else "")


def _size_of(path: str) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_size  # noqa: PTH116 - as a plain path, like the others
    except OSError:
        return 0

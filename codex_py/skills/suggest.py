"""The item that points the model to skills for what the user has just written, and the references of a skill as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.analysis import headings_of
from codex_py.skills.documents import SkillFiles, read_text
from codex_py.skills.model import Skill
from codex_py.text.sanitize import sanitize_line

SUGGESTIONS: Final = "skill_suggestions"
REFERENCES: Final = "skill_references"

MAX_BYTES: Final = 2500
# Characters of each description, tried in this order.
_LENGTHS: Final = (480, 320, 220, 150, 100, 70)
_INTRO: Final = (
    "Skills that may fit what the user writes next, found by its words. The list of skills does not show them in full. "
    "Read the file of one that fits before you begin; ignore the others."
)
NAMED: Final = " [named by the user]"

_MAX_LINES: Final = 40
_MAX_TITLE: Final = 80
_MAX_HEADINGS: Final = 160
_HEAD_BYTES: Final = 64 * 1024


def suggestion_item(skills: Sequence[Skill], named: frozenset[str] = frozenset()) -> tuple[ResponseItem, int]:
    """A developer message of at most 2,500 bytes with the first skills, at least one; and how many they are.

    `named` are the paths of those that the user named.
    """
    for count in range(len(skills), 0, -1):
        for length in _LENGTHS:
            item = _item(skills[:count], length, named)
            if len(item.encoded) <= MAX_BYTES:
                return item, count
    return _item(skills[:1], 0, named), 1


def _item(skills: Sequence[Skill], length: int, named: frozenset[str]) -> ResponseItem:
    lines = [
        f"- {_clean(skill.name)}{NAMED if str(skill.canonical_path) in named else ''}: "
        f"{_shortened(_clean(skill.description), length)} (file: {_clean(str(skill.path))})"
        for skill in skills
    ]
    return message("developer", "\n".join([f"<{SUGGESTIONS}>", _INTRO, *lines, f"</{SUGGESTIONS}>"]))


def references_item(skill: Skill, files: SkillFiles) -> ResponseItem | None:
    """The table of contents of a skill's references, at most 40 lines: file, title, headings and size."""
    if not files.references:
        return None
    lines = [f"References of the skill `{_clean(skill.name)}` in `{_clean(str(skill.directory))}`; read what you need:"]
    for name in files.references[: _MAX_LINES - 2]:
        lines.append(_reference_line(skill, name))
    if len(files.references) > _MAX_LINES - 2:
        lines.append(f"and {len(files.references) - (_MAX_LINES - 2)} more files")
    return message("user", "\n".join([f"<{REFERENCES}>", *lines, f"</{REFERENCES}>"]))


def _reference_line(skill: Skill, name: str) -> str:
    text = read_text(skill, f"{skill.directory}/{name}", _HEAD_BYTES)
    titles = [_clean(heading.title) for heading in headings_of(text)]
    title = _shortened(titles[0], _MAX_TITLE) if titles else ""
    rest = _shortened(", ".join(titles[1:]), _MAX_HEADINGS)
    size = f"{len(text.encode('utf-8', 'replace')):,} bytes" if len(text) < _HEAD_BYTES else "64 KiB or more"
    about = ": ".join(part for part in (title, rest) if part)
    return f"- {_clean(name)} ({size})" + (f" {about}" if about else "")


def _shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(0, length - 1)].rstrip()}…"


def _clean(text: str) -> str:
    """One line that cannot end the block it is in."""
    return sanitize_line(text).replace("</", "<\\/")

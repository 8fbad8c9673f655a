"""The item that points the model to skills for what the user has just written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.model import Skill
from codex_py.text.sanitize import sanitize_line

SUGGESTIONS: Final = "skill_suggestions"

MAX_BYTES: Final = 2500
# Characters of each description, tried in this order.
_LENGTHS: Final = (480, 320, 220, 150, 100, 70)
_INTRO: Final = (
    "Skills that may fit what the user writes next, found by its words. The list of skills does not show them in full. "
    "Read the file of one that fits before you begin; ignore the others."
)
NAMED: Final = " [named by the user]"


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
        f"- {one_line(skill.name)}{NAMED if str(skill.canonical_path) in named else ''}: "
        f"{shortened(one_line(skill.description), length)} (file: {one_line(str(skill.path))})"
        for skill in skills
    ]
    return message("developer", "\n".join([f"<{SUGGESTIONS}>", _INTRO, *lines, f"</{SUGGESTIONS}>"]))


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: max(0, length - 1)].rstrip()}…"


def one_line(text: str) -> str:
    """One line that cannot end the block it is in."""
    return sanitize_line(text).replace("</", "<\\/")

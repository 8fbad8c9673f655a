"""The item that points the model to skills for what the user has just written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.model import Skill
from codex_py.text.sanitize import sanitize_line

SUGGESTIONS: Final = "skill_suggestions"
MAX_SUGGESTED: Final = 8

_MAX_BYTES: Final = 1600
# Characters of each description, tried in this order.
_LENGTHS: Final = (160, 130, 100, 80, 60)
_FOUND: Final = (
    "Skills that may fit the user's next message, found by its words. Read the file of one that fits before you begin; "
    "ignore the others."
)
_BY_NAME: Final = "Skills that the user's next message names in words. Read the file of each before you begin."
_BOTH: Final = f"{_FOUND} The first are named in the message."
NAMED: Final = " [named by the user]"


def suggestion_item(skills: Sequence[Skill], named: frozenset[str] = frozenset()) -> tuple[ResponseItem, int]:
    """A developer message of at most 1,600 bytes with the first skills, at least one; and their number.

    `named` are the paths of the skills that the user named, which come first.
    """
    for count in range(min(len(skills), MAX_SUGGESTED), 0, -1):
        for length in _LENGTHS:
            text = _text(skills[:count], length, named)
            if len(text.encode("utf-8", "replace")) <= _MAX_BYTES:
                return message("developer", text), count
    return message("developer", _text(skills[:1], 0, named)), 1


def _text(skills: Sequence[Skill], length: int, named: frozenset[str]) -> str:
    is_named = [str(skill.canonical_path) in named for skill in skills]
    intro = _BY_NAME if all(is_named) else _BOTH if any(is_named) else _FOUND
    lines = [
        f"- {one_line(skill.name)}{NAMED if mark else ''}: {shortened(one_line(skill.description), length)}"
        f" (file: {one_line(str(skill.path))})"
        for skill, mark in zip(skills, is_named, strict=True)
    ]
    return "\n".join([f"<{SUGGESTIONS}>", intro, *lines, f"</{SUGGESTIONS}>"])


def shortened(text: str, length: int) -> str:
    """The text, or its beginning with an ellipsis."""
    return text if len(text) <= length else f"{text[: max(0, length - 1)].rstrip()}…"


def one_line(text: str) -> str:
    """One line that cannot end the block it is in."""
    return sanitize_line(text).replace("</", "<\\/")

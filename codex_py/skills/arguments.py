"""The arguments of a mentioned skill: what stands behind its name in a message."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.skills.mentions import NAME, lengths_of, longest_known

_OPENING: Final = rf"\s*(?:(?:\[\$|\$\[)({NAME})\][ \t\n\f\r]*\([^)]*\)|\$({NAME}))"
_QUOTED_OR_MENTION: Final = rf"\"[^\"\n]*\"|'[^'\n]*'|\[?\$\[?{NAME}"


class SkillArguments(NamedTuple):
    """The arguments of a skill, and the texts of the message without them: nothing in them is a mention."""

    text: str
    rest: tuple[str, ...]


def find_arguments(texts: Sequence[str], name: str, *, picked: bool) -> SkillArguments:
    """The words behind the first mention of a skill in some texts.

    Behind a mention that opens a text it is all of the text. Behind any other it is the rest of the line, up to the
    next mention that no quotes surround; punctuation right behind the name ends it. A skill that was `picked`, and that
    no text mentions, is meant for the whole of the message.
    """
    for number, text in enumerate(texts):
        found = _behind_opening(text, name) or _behind_mention(text, name)
        if found is not None:
            start, end = found
            rest = text[:start] + " " * (end > start) + text[end:]
            return SkillArguments(text[start:end].strip(), (*texts[:number], rest, *texts[number + 1 :]))
    if picked:
        return SkillArguments("\n".join(texts).strip(), tuple(texts))
    return SkillArguments("", tuple(texts))


def _behind_opening(text: str, name: str) -> tuple[int, int] | None:
    found = re.match(_OPENING, text)
    if found is None:
        return None
    linked, plain = found.groups()
    if linked is None:
        if longest_known(plain, (name,), lengths_of((name,))) != name:
            return None
        start = found.start(2) + len(name)
    elif linked == name:
        start = found.end()
    else:
        return None
    return _separated(text, start, len(text))


def _behind_mention(text: str, name: str) -> tuple[int, int] | None:
    escaped = re.escape(name)
    found = re.search(rf"(?:\[\$|\$\[){escaped}\][ \t]*\([^)\n]*\)|\${escaped}(?![A-Za-z0-9_-])", text)
    if found is None:
        return None
    line_end = text.find("\n", found.end())
    end = len(text) if line_end < 0 else line_end
    for other in re.finditer(_QUOTED_OR_MENTION, text[found.end() : end]):
        if other[0][0] not in "\"'":
            end = found.end() + other.start()
            break
    return _separated(text, found.end(), end)


def _separated(text: str, start: int, end: int) -> tuple[int, int]:
    """The part behind the name, where a space or a colon is between them; else nothing."""
    if text[start : start + 1] == ":":
        start += 1
    elif start < end and not text[start].isspace():
        return start, start
    return start, end

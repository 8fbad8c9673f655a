"""Filling the placeholders of a text with arguments: of the user's own commands, and of skills."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

_PLACEHOLDER: Final = r"\$(?:(\$)|(ARGUMENTS)\b|([1-9])(?![0-9])|([A-Z][A-Z0-9_]*)\b|\{([^\W\d][\w-]*)\})"
# Text between single quotes, as a shell, awk or SQL has it: also behind an option (`-F'|'`) and a prefix (`E'…'`).
# Neither the apostrophe of a word opens one, nor `\'`, nor `"'"`. A program on lines of its own may have empty ones.
_SINGLE_QUOTED: Final = (
    r"\"'\"|(?:(?<![\w\\])|(?<!\S)-\w+|\b[bfruEN])'"
    r"(?:\n(?:(?!```)[^'])*|(?:(?!\n[ \t]*\n)(?:[^'`]|`[^'`\n]*`))*)'(?!\w)"
)
# Splitting is slow, and nobody counts the words of a long text.
_MAX_SPLIT: Final = 16 * 1024


class PlaceholderValues(NamedTuple):
    """The values of the placeholders `$ARGUMENTS`, `$1` to `$9`, `$NAME` and `${name}`."""

    everything: str
    words: Sequence[str] = ()
    named: Mapping[str, str] = {}
    braced: Mapping[str, str] = {}
    escapes: bool = False
    """Whether `$$` is a dollar sign."""
    keeps_quoted_numbers: bool = False
    """Whether `$1` to `$9` stay as they are between single quotes: there they belong to a shell, awk or SQL."""

    def value(self, found: re.Match[str]) -> str | None:
        """The text that replaces a match; None if it is no placeholder of these."""
        _, everything, number, name, braced = found.groups()
        if everything:
            return self.everything
        if number:
            return self.words[int(number) - 1] if int(number) <= len(self.words) else ""
        return self.named.get(name) if name else self.braced.get(braced)


class FilledText(NamedTuple):
    """The text, and whether there was a placeholder in it."""

    text: str
    has_placeholder: bool


def fill_placeholders(text: str, values: PlaceholderValues, *, max_chars: int | None = None) -> FilledText:
    """Put the values into the text, once: a placeholder within a value is text. At most `max_chars` come back."""
    pieces: list[str] = []
    end = length = 0
    has_placeholder = False
    quoted = [found.span() for found in re.finditer(_SINGLE_QUOTED, text)] if values.keeps_quoted_numbers else []
    for found in re.finditer(_PLACEHOLDER, text):
        if found[3] and any(start < found.start() < end for start, end in quoted):
            continue
        is_dollar = found[1] is not None
        value = ("$" if values.escapes else None) if is_dollar else values.value(found)
        if value is None:
            continue
        has_placeholder = has_placeholder or not is_dollar
        pieces += (text[end : found.start()], value)
        length += found.start() - end + len(value)
        end = found.end()
        if max_chars is not None and length >= max_chars:
            return FilledText("".join(pieces)[:max_chars], has_placeholder)
    pieces.append(text[end:])
    return FilledText("".join(pieces)[:max_chars], has_placeholder)


def split_words(text: str) -> list[str]:
    """The words of a text as a shell splits them; by white space alone where a quote is not closed."""
    text = text[:_MAX_SPLIT]
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()

"""Reasoning that a model writes into its text, between `<think>` and `</think>` at the start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

THINK: Final = "<think>"
_TAGS: Final[Mapping[str, str]] = MappingProxyType({THINK: "</think>", "[THINK]": "[/THINK]"})


def in_tags(tag: str, thought: str) -> str:
    """Reasoning as the start of a text, the way the model wrote it; empty for an unknown tag."""
    return f"{tag}\n{thought}{_TAGS[tag]}\n\n" if tag in _TAGS else ""


def split_unopened(text: str) -> tuple[str, str]:
    """The reasoning before a closing tag on a line of its own that nothing has opened, and the text behind it.

    Some templates put the opening tag into the prompt, so that the model writes only the other one.
    """
    for tag, end in _TAGS.items():
        if end not in text:
            continue
        if (found := re.search(rf"^[ \t]*{re.escape(end)}[ \t]*$\n*", text, re.MULTILINE)) is None:
            continue
        thought = text[: found.start()]
        if tag not in thought and thought.count("```") % 2 == 0:
            return thought, text[found.end() :]
    return "", text


class ThinkSplitter:
    """Feed it a text in pieces; it gives back pieces with whether they are reasoning. Tags may be cut anywhere.

    `tag` is the tag that the reasoning began with.
    """

    def __init__(self) -> None:
        self.tag = ""
        self._read = self._begin
        self._end = ""
        self._held = ""
        # Line ends right behind a tag belong to it.
        self._after_tag = False

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The next piece of the text; what may be part of a tag is held back."""
        return self._read(text) if text else []

    def finish(self) -> list[tuple[bool, str]]:
        """Return the text that was held back."""
        held, self._held = self._held, ""
        is_reasoning = self._read == self._think
        self._read = self._write
        return [(is_reasoning, held)] if held else []

    def _begin(self, text: str) -> list[tuple[bool, str]]:
        self._held += text
        start = self._held.lstrip()
        for tag, end in _TAGS.items():
            if start.startswith(tag):
                self.tag, self._end, self._held, self._after_tag = tag, end, "", True
                self._read = self._think
                return self._think(start[len(tag) :])
            if tag.startswith(start):
                return []
        return self.finish()

    def _think(self, text: str) -> list[tuple[bool, str]]:
        text, self._held = self._held + self._without_line_ends(text), ""
        thought, tag, rest = text.partition(self._end)
        if tag:
            self._read, self._after_tag = self._write, True
            return [*([(True, thought)] if thought else ()), *self._write(rest)]
        # The end may have begun.
        length = next((n for n in range(len(self._end) - 1, 0, -1) if text.endswith(self._end[:n])), 0)
        cut = len(text) - length
        self._held = text[cut:]
        return [(True, text[:cut])] if cut else []

    def _write(self, text: str) -> list[tuple[bool, str]]:
        text = self._without_line_ends(text)
        return [(False, text)] if text else []

    def _without_line_ends(self, text: str) -> str:
        if self._after_tag:
            text = text.lstrip("\r\n")
            self._after_tag = not text
        return text

"""Regular expressions that are compiled when first used: the rules have a hundred, and one answer needs a few."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Pattern(NamedTuple):
    """As a compiled pattern, but for the moment of compiling; `re` itself remembers the result."""

    source: str
    flags: int = 0

    def compiled(self) -> re.Pattern[str]:
        """The pattern proper, for a loop over many short texts."""
        return re.compile(self.source, self.flags)

    def search(self, text: str, start: int = 0, end: int | None = None) -> re.Match[str] | None:
        return self.compiled().search(text, start, len(text) if end is None else end)

    def match(self, text: str) -> re.Match[str] | None:
        return self.compiled().match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self.compiled().fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self.compiled().finditer(text)

    def findall(self, text: str) -> list[Any]:
        return self.compiled().findall(text)

    def sub(self, new: str | Callable[[re.Match[str]], str], text: str, count: int = 0) -> str:
        return self.compiled().sub(new, text, count)

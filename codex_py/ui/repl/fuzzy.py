"""Fuzzy matching: the letters of a query in their order, the better the closer together and to the starts of words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

_WORD_STARTS: Final = "/_-. :$"
_ADJACENT: Final = 8
_AT_START: Final = 10
_IN_A_ROW: Final = 60


def score(query: str, text: str) -> int | None:
    """How well a text fits, higher is better; None when it does not. Letter case does not count."""
    query, low = query.lower(), text.lower()
    if not query:
        return 0
    whole = low.find(query)
    if whole >= 0:
        starts = whole == 0 or low[whole - 1] in _WORD_STARTS
        return _IN_A_ROW + len(query) * _ADJACENT + (_AT_START * 3 if starts else 0) + (20 if whole == 0 else 0) - whole
    return _scattered(query, low)


def best(query: str, items: Iterable[T], *, key: Callable[[T], Sequence[str]], limit: int) -> list[T]:
    """The items that fit best, in their original order where they fit equally. Of the texts of an item the first
    counts most."""
    if not query:
        return [item for item, _ in zip(items, range(limit), strict=False)]
    scored: list[tuple[int, T]] = []
    for item in items:
        marks = [
            mark - 30 * position for position, text in enumerate(key(item)) if (mark := score(query, text)) is not None
        ]
        if marks:
            scored.append((max(marks) - len(key(item)[0]) // 4, item))
    scored.sort(key=lambda pair: -pair[0])
    return [item for _, item in scored[:limit]]


def letters_in_order(query: bytes) -> re.Pattern[bytes]:
    """A pattern for a line, with the line end before it, in which the letters stand in this order; linear in a text."""
    letters = [re.escape(query[at : at + 1]) for at in range(len(query))]
    return re.compile(b"\n" + b"".join(b"[^\n%b]*+%b" % (letter, letter) for letter in letters))


def _scattered(query: str, low: str) -> int | None:
    total = 0
    at = -1
    for letter in query:
        found = low.find(letter, at + 1)
        if found < 0:
            return None
        if found == at + 1:
            total += _ADJACENT
        elif found == 0 or low[found - 1] in _WORD_STARTS:
            total += _AT_START
        else:
            total -= min(found - at, 5)
        at = found
    return total

"""Where in a file the lines of a chunk are. Pure; the work is bounded whatever the lines are.

Four passes, each over the whole rest of the file before the next one: exact, without trailing space, without
surrounding space, with typographic characters folded to ASCII. The first place of the first pass that finds one wins.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from codex_py.patch.grammar import PatchError

_FOLDED: Final = {
    **dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-"),
    **dict.fromkeys(range(0x2018, 0x201C), "'"),
    **dict.fromkeys(range(0x201C, 0x2020), '"'),
    **dict.fromkeys([0x00A0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000], " "),
}


def fold(line: str) -> str:
    """A line as the most lenient pass sees it."""
    return line.strip().translate(_FOLDED)


def _as_is(line: str) -> str:
    return line


_PASSES: Final[tuple[Callable[[str], str], ...]] = (_as_is, str.rstrip, str.strip, fold)
_STEPS: Final = 10_000_000
_CHARACTERS_A_STEP: Final = 64


class Effort:
    """How much looking one patch may cost, shared by all its files and chunks: a few seconds at the very most."""

    def __init__(self, steps: int = _STEPS) -> None:
        self._left = steps

    def spend(self, steps: int) -> None:
        """Count some work. Raise `PatchError` when there has been too much."""
        self._left -= steps
        if self._left < 0:
            raise PatchError("the chunks of this patch take too long to place: send it in smaller patches")

    def spend_on(self, text: str | bytes) -> None:
        """Count one pass over a text."""
        self.spend(len(text) // _CHARACTERS_A_STEP + 1)


@dataclass(frozen=True, slots=True)
class SeekMatch:
    """Where lines were found, and where else after that in the same pass; both count from 0."""

    start: int
    again: int | None = None


class _View:
    """The lines as one pass sees them, each a number, and where each number occurs."""

    def __init__(self, lines: Sequence[str], normalise: Callable[[str], str]) -> None:
        self.numbers: dict[str, int] = {}
        self.lines: list[int] = []
        self.positions: list[list[int]] = []
        for index, line in enumerate(lines):
            number = self.numbers.setdefault(normalise(line), len(self.positions))
            if number == len(self.positions):
                self.positions.append([])
            self.positions[number].append(index)
            self.lines.append(number)


class LineFinder:
    """Finds runs of lines in one file."""

    def __init__(self, lines: Sequence[str], effort: Effort) -> None:
        self._lines = lines
        self._effort = effort
        self._views: list[_View] = []

    def find(self, expected: Sequence[str], start: int) -> SeekMatch | None:
        """The first place at or after `start` where the `expected` lines (at least one) stand in a row."""
        for step in range(len(_PASSES)):
            pattern = self._pattern(expected, step)
            if pattern is None:
                continue
            view = self._view(step)
            first = self._search(view, pattern, start)
            if first is not None:
                return SeekMatch(first, self._search(view, pattern, first + 1))
        return None

    def find_last(self, expected: Sequence[str], start: int) -> SeekMatch | None:
        """The `expected` lines as the last ones of the file, not before `start`."""
        index = len(self._lines) - len(expected)
        if index < start:
            return None
        for normalise in _PASSES:
            self._effort.spend(len(expected))
            if all(normalise(self._lines[index + offset]) == normalise(line) for offset, line in enumerate(expected)):
                return SeekMatch(index)
        return None

    def find_header(self, text: str, start: int) -> SeekMatch | None:
        """The line an `@@` header names: the whole line, or else one that begins with it as a whole word."""
        match = self.find([text], start)
        if match is None and text.rstrip().endswith("@@"):
            text = text.rstrip().removesuffix("@@")
            match = self.find([text], start)
        return match or self._find_beginning(fold(text), start)

    def _find_beginning(self, text: str, start: int) -> SeekMatch | None:
        if not text:
            return None
        view = self._view(len(_PASSES) - 1)
        self._effort.spend(len(view.positions))
        starts: list[int] = []
        for line, number in view.numbers.items():
            if line.startswith(text) and not _goes_on(text[-1], line[len(text) :][:1]):
                same = view.positions[number]
                begin = bisect_left(same, start)
                starts += same[begin : begin + 2]
        starts.sort()
        return SeekMatch(starts[0], starts[1] if len(starts) > 1 else None) if starts else None

    def _view(self, step: int) -> _View:
        while len(self._views) <= step:
            self._effort.spend(len(self._lines))
            self._views.append(_View(self._lines, _PASSES[len(self._views)]))
        return self._views[step]

    def _pattern(self, expected: Sequence[str], step: int) -> list[int] | None:
        self._effort.spend(len(expected))
        numbers = self._view(step).numbers
        pattern = [numbers.get(_PASSES[step](line), -1) for line in expected]
        return None if -1 in pattern else pattern

    def _search(self, view: _View, pattern: list[int], start: int) -> int | None:
        size = len(pattern)
        rarest = min(range(size), key=lambda offset: len(view.positions[pattern[offset]]))
        positions = view.positions[pattern[rarest]]
        begin = bisect_left(positions, start + rarest)
        if (len(positions) - begin) * size > 4 * (len(view.lines) - start + size):
            self._effort.spend(len(view.lines) - start + size)
            return _search_in_order(view.lines, pattern, start)
        for index in range(begin, len(positions)):
            self._effort.spend(size)
            first = positions[index] - rarest
            if view.lines[first : first + size] == pattern:
                return first
        return None


def _goes_on(last: str, following: str) -> bool:
    return _is_word(last) and _is_word(following)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _search_in_order(lines: Sequence[int], pattern: Sequence[int], start: int) -> int | None:
    """Knuth, Morris and Pratt: linear whatever repeats."""
    borders = [0] * len(pattern)
    size = 0
    for index in range(1, len(pattern)):
        while size and pattern[index] != pattern[size]:
            size = borders[size - 1]
        size += pattern[index] == pattern[size]
        borders[index] = size
    size = 0
    for index in range(start, len(lines)):
        while size and lines[index] != pattern[size]:
            size = borders[size - 1]
        size += lines[index] == pattern[size]
        if size == len(pattern):
            return index - size + 1
    return None

"""What a failed search says: the lines of the file that come closest, with their numbers. Bounded in cost and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.patch.seek import fold

_SHOWN_LINES: Final = 8
_SHOWN_WIDTH: Final = 160
_VOTERS: Final = 100
_REPEATS: Final = 50
_CANDIDATES: Final = 2000
_FINALISTS: Final = 20
_WEIGHTY: Final = 8
_ENOUGH: Final = 0.5


def show_lines(lines: Sequence[str]) -> str:
    """Lines as a message may quote them: not too many, none too long."""
    shown = [_cut(line) for line in lines[: 3 * _SHOWN_LINES]]
    if len(lines) > len(shown):
        shown.append(f"[{len(lines) - len(shown)} more lines]")
    return "\n".join(shown)


def describe_closest(lines: Sequence[str], expected: Sequence[str], cursor: int) -> str:
    """Say where the `expected` lines may have been meant. `cursor` is the first line that was searched, from 0."""
    if not lines:
        return "the file is empty"
    start, weight = _aligned(lines, expected, cursor)
    if weight < _WEIGHTY:
        similar = _similar(lines, expected, cursor)
        start = start if similar is None else similar
    if start is None:
        return f"nothing like it among the {len(lines)} lines of the file"
    end = min(len(lines), start + min(len(expected), _SHOWN_LINES))
    shown = "\n".join(f"{number + 1}: {_cut(lines[number])}" for number in range(start, end))
    before = f" (the search began at line {cursor + 1}: hunks go down the file)" if start < cursor else ""
    return f"the closest lines found{before}:\n{shown}"


def _aligned(lines: Sequence[str], expected: Sequence[str], cursor: int) -> tuple[int | None, int]:
    """The start at which most of the wanted text stands where it should; each equal line votes with its length."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(expected[:_VOTERS]):
        if key := fold(line):
            offsets.setdefault(key, []).append(offset)
    positions: dict[str, list[int]] = {key: [] for key in offsets}
    for index, line in enumerate(lines):
        found = positions.get(fold(line))
        if found is not None:
            found.append(index)
    votes: dict[int, int] = {}
    for key, found in positions.items():
        if len(found) * len(offsets[key]) > _REPEATS:
            continue
        for index in found:
            for offset in offsets[key]:
                start = max(0, index - offset)
                votes[start] = votes.get(start, 0) + min(len(key), 40)
    if not votes:
        return None, 0
    best = max(votes, key=lambda start: (votes[start], -abs(start - cursor)))
    return best, votes[best]


def _similar(lines: Sequence[str], expected: Sequence[str], cursor: int) -> int | None:
    """Where the longest wanted line would stand if the line most like it were that line."""
    # A failed search is rare: difflib is not worth loading for anything else.
    from difflib import SequenceMatcher

    offset = max(range(len(expected)), key=lambda index: len(fold(expected[index])[:_SHOWN_WIDTH]))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(fold(expected[offset])[:_SHOWN_WIDTH])
    first = max(0, min(cursor - _CANDIDATES // 4, len(lines) - _CANDIDATES))
    scores: list[tuple[float, int]] = []
    for position in range(first, min(len(lines), first + _CANDIDATES)):
        matcher.set_seq1(fold(lines[position][:_SHOWN_WIDTH]))
        if matcher.real_quick_ratio() >= _ENOUGH and (score := matcher.quick_ratio()) >= _ENOUGH:
            scores.append((score, -position))
    best, chosen = _ENOUGH, None
    for _, negated in sorted(scores, reverse=True)[:_FINALISTS]:
        matcher.set_seq1(fold(lines[-negated][:_SHOWN_WIDTH]))
        if (score := matcher.ratio()) > best:
            best, chosen = score, max(0, -negated - offset)
    return chosen


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_WIDTH else line[:_SHOWN_WIDTH] + "…"

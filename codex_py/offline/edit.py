"""Turning "old text becomes new text" into a patch. Pure: lines in, hunks out."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_END_OF_LINE: Final = re.compile(r"\r\n|\n|\r")
_CONTEXT: Final = 3


class Segment(NamedTuple):
    """Consecutive lines of a file, without their line ends; `first` is the number of the first one."""

    first: int
    lines: tuple[str, ...]


class Edit(NamedTuple):
    """`hunks` are the lines of an update for the apply_patch format; `after` are the segments as they will be."""

    occurrences: int
    places: tuple[int, ...]
    hunks: tuple[str, ...]
    after: tuple[tuple[str, ...], ...]


class _Change(NamedTuple):
    """Lines `start` to `end` (exclusive) of a segment become `new`."""

    start: int
    end: int
    new: tuple[str, ...]


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of a text the way a patch sees them: every kind of line end ends one, the last may lack it."""
    lines = _END_OF_LINE.split(text)
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def plan_edit(segments: list[Segment], old: str, new: str, *, whole_words: bool) -> Edit:
    """Replace every occurrence in every segment.

    A changed line is told by its own text: as all the places that hold `old` change, and change in their order, the
    first line that fits after the hunk before is always the one meant. The lines around it only help a reader.
    """
    pattern = _pattern(old, whole_words=whole_words)
    occurrences, places, hunks, after = 0, list[int](), list[str](), list[tuple[str, ...]]()
    for segment in segments:
        found, changes = _changes(segment.lines, pattern, _joined(new), _joined(old))
        occurrences += found
        places += [segment.first + change.start for change in changes]
        hunks += _hunks(segment.lines, changes)
        after.append(_apply(segment.lines, changes))
    return Edit(occurrences, tuple(places), tuple(hunks), tuple(after))


def _joined(text: str) -> str:
    return "\n".join(_END_OF_LINE.split(text))


def _pattern(old: str, *, whole_words: bool) -> re.Pattern[str]:
    escaped = re.escape(_joined(old))
    return re.compile(rf"(?<!\w){escaped}(?!\w)" if whole_words else escaped)


def _changes(lines: tuple[str, ...], pattern: re.Pattern[str], new: str, old: str) -> tuple[int, list[_Change]]:
    """The changed ranges of lines, those that touch joined into one."""
    text = "\n".join(lines)
    starts, position = [0], 0
    for line in lines[:-1]:
        position += len(line) + 1
        starts.append(position)
    ranges: list[list[int]] = []
    hits: list[list[re.Match[str]]] = []
    found, at = 0, 0
    for hit in pattern.finditer(text):
        found += 1
        while at + 1 < len(starts) and starts[at + 1] <= hit.start():
            at += 1
        last = at
        while last + 1 < len(starts) and starts[last + 1] <= hit.end():
            last += 1
        if ranges and at < ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], last + 1)
            hits[-1].append(hit)
        else:
            ranges.append([at, last + 1])
            hits.append([hit])
    return found, [
        _Change(start, end, _rewritten(text, starts, (start, end), group, new))
        for (start, end), group in zip(ranges, hits, strict=True)
    ]


def _rewritten(
    text: str, starts: list[int], span: tuple[int, int], hits: list[re.Match[str]], new: str
) -> tuple[str, ...]:
    begin = starts[span[0]]
    end = starts[span[1]] - 1 if span[1] < len(starts) else len(text)
    pieces: list[str] = []
    for hit in hits:
        pieces += [text[begin : hit.start()], new]
        begin = hit.end()
    result = "".join(pieces) + (text[begin:end] if begin <= end else "")
    # Taking out the whole of a line takes out the line.
    return () if not result and not new else tuple(result.split("\n"))


def _hunks(lines: tuple[str, ...], changes: list[_Change]) -> list[str]:
    hunks: list[str] = []
    shown = 0
    for position, change in enumerate(changes):
        before = max(shown, change.start - _CONTEXT)
        touches = bool(hunks) and position > 0 and change.start - changes[position - 1].end <= 2 * _CONTEXT
        if touches:
            before = shown
        else:
            hunks.append("@@")
        hunks += [f" {line}" for line in _without_mark(lines[before : change.start], before)]
        hunks += [f"-{line.removeprefix(_mark(change.start))}" for line in lines[change.start : change.end]]
        hunks += [f"+{line.removeprefix(_mark(change.start))}" for line in change.new]
        following = changes[position + 1].start if position + 1 < len(changes) else len(lines)
        shown = min(change.end + _CONTEXT, following)
        if following - change.end <= 2 * _CONTEXT and position + 1 < len(changes):
            shown = change.end
        else:
            hunks += [f" {line}" for line in lines[change.end : shown]]
    return hunks


def _mark(line: int) -> str:
    """A byte order mark stands before the first line, and is no part of its text."""
    return "\ufeff" if line == 0 else ""


def _without_mark(lines: tuple[str, ...], first: int) -> list[str]:
    return [line.removeprefix(_mark(first)) for line in lines[:1]] + list(lines[1:])


def _apply(lines: tuple[str, ...], changes: list[_Change]) -> tuple[str, ...]:
    result: list[str] = []
    end = 0
    for change in changes:
        result += [*lines[end : change.start], *change.new]
        end = change.end
    return (*result, *lines[end:])

"""A text cut into passages at its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

_HEADING: Final = re.compile(r"\n(#{1,6})[ \t]+(\S[^\n]*)")

# About 200 words, in characters; smaller sections are joined up to the lesser number.
_CHUNK_CHARS: Final = 1300
_SMALL_CHARS: Final = 700
_CHUNK_LINES: Final = 40
# The most characters of a passage with its neighbours.
_WINDOW_CHARS: Final = 2000
_MAX_HEADING: Final = 120


class TextChunk(NamedTuple):
    """A part of a text: its first and last line, counted from 1, the headings above it, and the text."""

    start: int
    end: int
    heading: str
    text: str


class Heading(NamedTuple):
    """A heading of a Markdown text: where its line begins, its level and its words."""

    at: int
    level: int
    title: str


def headings_of(text: str) -> list[Heading]:
    """The headings of a Markdown text, in order."""
    # The line break before the first line is missing, which a heading there needs to be found.
    first = _HEADING.match(f"\n{text[:_MAX_HEADING]}") if text.startswith("#") else None
    found = [Heading(0, len(first[1]), first[2].strip())] if first else []
    for match in _HEADING.finditer(text):
        found.append(Heading(match.start() + 1, len(match[1]), match[2].strip()[:_MAX_HEADING]))
    return found


def cut_chunks(text: str, headings: Sequence[Heading], small: int = _SMALL_CHARS) -> Iterator[TextChunk]:
    """The chunks of a text, in order: cut at headings, at most about 200 words and 40 lines.

    Sections of less than `small` characters are joined.
    """
    cuts = [*headings] if headings and headings[0].at == 0 else [Heading(0, 0, ""), *headings]
    above: list[Heading] = []
    begin, path, line = 0, "", 1
    for number, cut in enumerate(cuts):
        end = cuts[number + 1].at if number + 1 < len(cuts) else len(text)
        if cut.level:
            above = [entry for entry in above if entry.level < cut.level]
            above.append(cut)
        if begin == cut.at:
            path = " ".join([entry.title for entry in above])
        if end - begin < small and end != len(text):
            continue
        while begin < end:
            stop = _end_of_chunk(text, begin, end)
            lines = text.count("\n", begin, stop)
            part = text[begin:stop]
            if part and not part.isspace():
                yield TextChunk(line, max(line, line + lines - part.endswith("\n")), path, part)
            line += lines
            begin = stop
            path = " ".join([entry.title for entry in above])


def with_neighbours(chunks: Sequence[TextChunk], at: int, taken: set[int]) -> range:
    """The positions of a chunk of a text and what follows and precedes it, up to 40 lines and about 300 words.

    What is `taken` already is left out.
    """
    first, last = at, at
    size = len(chunks[at].text)
    grows = True
    while grows:
        grows = False
        for begin, end, other in ((first, last + 1, last + 1), (first - 1, last, first - 1)):
            if not 0 <= other < len(chunks) or other in taken:
                continue
            more = size + len(chunks[other].text)
            if more <= _WINDOW_CHARS and chunks[end].end - chunks[begin].start < _CHUNK_LINES:
                first, last, size, grows = begin, end, more, True
                break
    return range(first, last + 1)


def _end_of_chunk(text: str, begin: int, end: int) -> int:
    """Where the chunk that begins here ends: at the end of the section, or behind the last line that fits."""
    stop = end
    if end - begin > _CHUNK_CHARS:
        limit = begin + _CHUNK_CHARS
        cut = text.rfind("\n", begin, limit) + 1
        stop = cut if cut > begin else limit
    if text.count("\n", begin, stop) > _CHUNK_LINES:
        at = begin
        for _ in range(_CHUNK_LINES):
            at = text.index("\n", at) + 1
        stop = at
    return stop

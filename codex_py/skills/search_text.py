"""Texts and queries as SQLite's full-text index gets them: pairs of characters, sections, words that mean something."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, NamedTuple

# Han, kana and Hangul are written without spaces, or with endings that hide the words.
_CJK: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_FRONT_MATTER: Final = re.compile(r"---[ \t]*\n.*?\n---[ \t]*(?=\n|\Z)", re.DOTALL)
_MAX_LINES: Final = 40
# A heading begins a section only behind as many lines.
_MIN_LINES: Final = 25
_MAX_QUERY: Final = 4000
_MAX_TERMS: Final = 20
_MAX_WORD: Final = 40


class Section(NamedTuple):
    """A part of a text by its first and last line, counted from 1, with the headings in it."""

    start: int
    end: int
    headings: str
    text: str


def with_pairs(text: str) -> str:
    """A text with each run of Chinese, Japanese or Korean as overlapping pairs of characters."""
    return text if text.isascii() else _CJK.sub(_pairs, text)


def _pairs(run: re.Match[str]) -> str:
    text = run[0]
    pairs = [text[at : at + 2] for at in range(len(text) - 1)] or [text]
    return f" {' '.join(pairs)} "


def without_front_matter(text: str) -> str:
    """A text with empty lines in place of its front matter."""
    found = _FRONT_MATTER.match(text)
    return "\n" * found[0].count("\n") + text[found.end() :] if found else text


def sections_of(text: str) -> Iterator[Section]:
    """The sections of a text, in order: at most 40 lines, cut at headings where they are not short."""
    lines = text.split("\n")
    begin, headings = 0, list[str]()
    for at, line in enumerate(lines):
        is_heading = line.startswith("#")
        if at - begin == _MAX_LINES or (is_heading and at - begin >= _MIN_LINES):
            yield from _section(lines, begin, at, headings)
            begin, headings = at, []
        if is_heading:
            headings.append(line.strip("# \t"))
    yield from _section(lines, begin, len(lines), headings)


def _section(lines: list[str], begin: int, end: int, headings: list[str]) -> Iterator[Section]:
    text = "\n".join(lines[begin:end])
    if text and not text.isspace():
        yield Section(begin + 1, end, " ".join(headings), text)


def query_terms(text: str) -> list[str]:
    """The words of a query that mean something, in order; each is letters and digits only."""
    stop = frozenset(Path(__file__).with_name("stop_words.txt").read_text("utf-8").split())
    words = re.findall(r"[^\W_]+", with_pairs(text[:_MAX_QUERY]).lower())
    return [word for word in dict.fromkeys(words) if len(word) <= _MAX_WORD and not _is_stop(word, stop)][:_MAX_TERMS]


def _is_stop(word: str, stop: Collection[str]) -> bool:
    """Whether a word says nothing; the list has words without accents, and characters of Chinese grammar."""
    if len(word) == 1 or word in stop:
        return True
    if _CJK.match(word):
        # Hiragana are mostly the grammar of Japanese.
        return all(char in stop or "\u3040" <= char <= "\u309f" for char in word)
    folded = (char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))
    return not word.isascii() and "".join(folded) in stop

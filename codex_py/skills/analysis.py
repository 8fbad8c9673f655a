"""Text as the search index takes it: identifiers split, Chinese, Japanese and Korean as pairs of characters; chunks.

What is left to SQLite: cutting into words, folding case and accents, English stems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

# Han, kana and Hangul: written without spaces, or with endings that hide the word.
_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002ffff"
_CJK_RUN: Final = re.compile(f"[{_CJK}]+")
# The capital comes first, so that the search jumps from one to the next.
_CAMEL: Final = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")
_WORD: Final = re.compile(r"[^\W_]+")
_HIDDEN_CHARS: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
_HIDDEN: Final = re.compile(f"[{_HIDDEN_CHARS}]")
_ODD: Final = re.compile(f"[{_CJK}{_HIDDEN_CHARS}]")
_FENCE: Final = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HEADING: Final = re.compile(r"\n(#{1,6})[ \t]+(\S[^\n]*)")

MAX_QUERY_CHARS: Final = 4000
MAX_TERMS: Final = 32
_MAX_WORD: Final = 40

# About 200 words, in characters; smaller sections are joined up to the lesser number.
_CHUNK_CHARS: Final = 1300
_SMALL_CHARS: Final = 350
_CHUNK_LINES: Final = 40
_MAX_HEADING: Final = 120


class TextChunk(NamedTuple):
    """A part of a text: its first and last line, counted from 1, the headings above it, and the text."""

    start: int
    end: int
    heading: str
    text: str


class Words:
    """The stop words, and the lexicon of technical terms between languages; read from their files at first use."""

    @cached_property
    def stop(self) -> frozenset[str]:
        return frozenset(_read("stop.txt").split())

    @cached_property
    def everyday(self) -> frozenset[str]:
        """Words of everyday work on code, which say little about the kind of work."""
        return frozenset(_read("everyday.txt").split())

    @cached_property
    def lexicon(self) -> Mapping[str, tuple[str, ...]]:
        """English words by a word of another language, in lower case and without accents."""
        found: dict[str, tuple[str, ...]] = {}
        for line in _read("lexicon.txt").splitlines():
            english, _, others = line.partition(":")
            for other in others.split(","):
                key = fold(other.strip())
                if key:
                    found[key] = (*found.get(key, ()), *english.split())
        return found

    @cached_property
    def longest(self) -> int:
        """The length of the longest Chinese, Japanese or Korean key."""
        return max((len(key) for key in self.lexicon if _CJK_RUN.match(key)), default=0)

    @cached_property
    def phrases(self) -> Mapping[str, tuple[str, ...]]:
        """The keys of several words, by their first one."""
        found: dict[str, tuple[str, ...]] = {}
        for key in self.lexicon:
            if " " in key:
                first = key.partition(" ")[0]
                found[first] = (*found.get(first, ()), key)
        return found


def _read(name: str) -> str:
    return Path(__file__).with_name("words").joinpath(name).read_text("utf-8")


def fold(text: str) -> str:
    """Lower case without accents, as SQLite compares words."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def prepare(text: str) -> str:
    """A text for the index: identifiers split into words, characters without spaces between them as pairs.

    Lines stay lines.
    """
    text = _CAMEL.sub(r" \g<0>", text)
    if text.isascii() or not _ODD.search(text):
        return text
    return _CJK_RUN.sub(_pairs, _HIDDEN.sub("", text))


def _pairs(match: re.Match[str]) -> str:
    run = match[0]
    if len(run) < 3:
        return f" {run} "
    return " ".join(["", *(run[at : at + 2] for at in range(len(run) - 1)), ""])


def query_terms(text: str, words: Words) -> tuple[str, ...]:
    """The words a query is searched by, each once and at most 32: letters and digits only, none of them a stop word.

    Words of other languages are followed by their English ones. Code fences do not count, and nothing beyond the first
    4,000 characters.
    """
    plain = _HIDDEN.sub("", _FENCE.sub(" ", text[: 4 * MAX_QUERY_CHARS]))[:MAX_QUERY_CHARS]
    found: dict[str, None] = {}
    tokens = [fold(token) for token in _WORD.findall(_CJK_RUN.sub(r" \g<0> ", _CAMEL.sub(r" \g<0>", plain)))]
    for at, token in enumerate(tokens):
        for phrase in words.phrases.get(token, ()):
            if " ".join(tokens[at : at + phrase.count(" ") + 1]) == phrase:
                found.update(dict.fromkeys(words.lexicon[phrase]))
        if _CJK_RUN.match(token):
            found.update(dict.fromkeys(_translated(token, words)))
            found.update(dict.fromkeys(_pairs_of(token)))
        elif token not in words.stop and len(token) <= _MAX_WORD and (len(token) > 1 or token in "rc"):
            found[token] = None
            found.update(dict.fromkeys(_translation(token, words)))
    return tuple(term for term in found if term not in words.stop)[:MAX_TERMS]


# Endings of plurals and cases, tried in this order.
_ENDINGS: Final = ("", "s", "en", "n", "e", "es", "er", "x", "i", "a")
_MIN_COMPOUND: Final = 5


def _translation(token: str, words: Words) -> tuple[str, ...]:
    """The English words for a word; of a compound of another language those for its last part, or its first."""
    lexicon = words.lexicon
    for ending in _ENDINGS:
        stem = token.removesuffix(ending)
        if (not ending or (stem != token and len(stem) > 3)) and stem in lexicon:
            return lexicon[stem]
    for cut in range(3, len(token) - _MIN_COMPOUND + 1):
        for ending in ("", "en", "n", "s"):
            if (last := token[cut:].removesuffix(ending)) in lexicon and len(last) >= _MIN_COMPOUND:
                return (*lexicon.get(token[:cut], ()), *lexicon.get(token[: cut - 1], ()), *lexicon[last])
    return ()


def _translated(run: str, words: Words) -> Iterator[str]:
    """The English words of a run without spaces, the longest key first at each place."""
    at = 0
    while at < len(run):
        for length in range(min(words.longest, len(run) - at), 0, -1):
            if found := words.lexicon.get(run[at : at + length]):
                yield from found
                at += length
                break
        else:
            at += 1


def _pairs_of(run: str) -> list[str]:
    return [run] if len(run) < 3 else [run[at : at + 2] for at in range(len(run) - 1)]


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


def cut_chunks(text: str, headings: Sequence[Heading]) -> Iterator[TextChunk]:
    """The chunks of a text, in order: cut at headings, at most about 200 words and 40 lines; small sections joined."""
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
        if end - begin < _SMALL_CHARS and end != len(text):
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

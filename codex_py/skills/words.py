"""Word lists: words without meaning, words of change logs, and English translations of others.

The lists are texts in `words/`; that of words without meaning is in lower case and without accents. For fast look-ups
the others are made into one table, which the digest keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.skills.stems import fold

# Endings of plurals and cases, tried in this order.
_ENDINGS: Final = ("", "s", "en", "n", "e", "es", "er", "x", "i", "a")
_MIN_COMPOUND: Final = 5
# Languages in other scripts: their stop words cannot be words of a language in Latin letters.
_OTHER_SCRIPTS: Final = ("ru", "zh")
# In what part of the lines of change logs the words of each line of `coding.txt` occur, about.
_PARTS: Final = (0.017, 0.0034, 0.00068)
# Before the keys of synonyms, so that they and words of other languages are apart.
_SYNONYM: Final = "~"


class Words:
    """Looks words up. `table` is what `make_table` made, None to make it when it is needed."""

    def __init__(self, table: bytes | None = None) -> None:
        self._made_table = table

    def stop_words(self, tokens: Sequence[str]) -> frozenset[str]:
        """Words that say nothing in a text of these words.

        `car` and `son` say something in English: words of another language that has Latin letters only count in a text
        that has at least two of them, and more than English ones.
        """
        counts = self._counts(tokens)
        found = self._stop["en"]
        for language, words in self._stop.items():
            if language in _OTHER_SCRIPTS or counts[language] >= max(2, counts["en"] + 1):
                found |= words
        return found

    def is_english(self, tokens: Sequence[str]) -> bool:
        """Whether a text of these words is English rather than another language, by its stop words."""
        counts = self._counts(tokens)
        return counts["en"] > max(count for language, count in counts.items() if language != "en")

    @cached_property
    def in_change_logs(self) -> Mapping[str, float]:
        """In what part of the lines of public change logs a stem occurs; rarer ones are left out."""
        lists = self._table[: self._begin - 1].decode().split("\t")
        return {stem: part for part, stems in zip(_PARTS, lists, strict=True) for stem in stems.split()}

    def synonyms(self, token: str) -> tuple[str, ...]:
        """The words of skills for an English word of everyday life."""
        return self._find(f"{_SYNONYM}{token}")

    def in_english(self, token: str, *, is_known: bool) -> tuple[str, ...]:
        """The English words for a word of another language, if it is one.

        Of one that is not known otherwise the endings are tried, and the parts of a compound.
        """
        if found := self._find(token):
            return found
        return () if is_known or len(token) < _MIN_COMPOUND else self._by_parts(token)

    def phrases(self, token: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The phrases of other languages that begin with a word, each with its English words."""
        for line in self._lines(f"{token} "):
            rest, _, english = line.decode().partition("\t")
            yield f"{token} {rest}", tuple(english.split())

    def segments(self, run: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """A run without spaces cut at the longest words that are known; each part with its English words."""
        at, rest = 0, ""
        while at < len(run):
            for length in range(min(self._longest, len(run) - at), 0, -1):
                if english := self._lexicon.get(run[at : at + length]):
                    if rest:
                        yield rest, ()
                        rest = ""
                    yield run[at : at + length], english
                    at += length
                    break
            else:
                rest += run[at]
                at += 1
        if rest:
            yield rest, ()

    def _by_parts(self, token: str) -> tuple[str, ...]:
        lexicon = self._lexicon
        for ending in _ENDINGS[1:]:
            root = token.removesuffix(ending)
            if root != token and len(root) > 3 and root in lexicon:
                return lexicon[root]
        for cut in range(3, len(token) - _MIN_COMPOUND + 1):
            for ending in ("", "en", "n", "s"):
                last = token[cut:].removesuffix(ending)
                if last in lexicon and len(last) >= _MIN_COMPOUND:
                    return (*lexicon.get(token[:cut], ()), *lexicon.get(token[: cut - 1], ()), *lexicon[last])
        return ()

    def _find(self, key: str) -> tuple[str, ...]:
        return next((tuple(line.decode().split()) for line in self._lines(f"{key}\t")), ())

    def _lines(self, prefix: str) -> Iterator[bytes]:
        return lines_with(self._table, prefix.encode("utf-8", "replace"), self._begin)

    def _counts(self, tokens: Sequence[str]) -> Mapping[str, int]:
        return {language: sum(token in words for token in tokens) for language, words in self._stop.items()}

    @cached_property
    def _stop(self) -> Mapping[str, frozenset[str]]:
        lines = (line.partition(":") for line in _read("stop.txt").splitlines())
        found: dict[str, frozenset[str]] = {}
        for language, _, words in lines:
            found[language] = found.get(language, frozenset()) | frozenset(words.split())
        return found

    @cached_property
    def _table(self) -> bytes:
        return make_table() if self._made_table is None else self._made_table

    @cached_property
    def _begin(self) -> int:
        """Where the lines begin that are in order."""
        return self._table.index(b"\n") + 1

    @cached_property
    def _lexicon(self) -> Mapping[str, tuple[str, ...]]:
        lines = (line.partition("\t") for line in self._table.decode().split("\n")[1:])
        return {key: tuple(english.split()) for key, _, english in lines if key[:1] != _SYNONYM}

    @cached_property
    def _longest(self) -> int:
        """The length of the longest key in Chinese, Japanese or Korean."""
        return max((len(key) for key in self._lexicon if not key.isascii() and " " not in key), default=0)


def lines_with(lines: bytes, prefix: bytes, begin: int = 0) -> Iterator[bytes]:
    """The lines that begin with `prefix`, in order, without it; each line ends with a newline, the first at `begin`."""
    at = _first(lines, prefix, begin)
    while lines.startswith(prefix, at):
        end = lines.find(b"\n", at)
        if end < 0:
            return
        yield lines[at + len(prefix) : end]
        at = end + 1


def _first(lines: bytes, prefix: bytes, low: int) -> int:
    """Where the first line begins that is not before `prefix`."""
    high = len(lines)
    while low < high:
        begin = lines.rfind(b"\n", low, (low + high) // 2) + 1 or low
        end = lines.find(b"\n", begin)
        if end < 0:
            return high
        if lines[begin:end] < prefix:
            low = end + 1
        else:
            high = begin
    return low


def make_table() -> bytes:
    """A line with the stems of change logs, then one for each word that has others, in the order of their bytes.

    Such a line has the word, a tab, and the others.
    """
    found: dict[str, dict[str, None]] = {}
    for line in _read("lexicon.txt").splitlines():
        english, _, others = line.partition(":")
        for other in others.split(","):
            found.setdefault(fold(other.strip()), {}).update(dict.fromkeys(english.split()))
    for line in _read("synonyms.txt").splitlines():
        meant, _, others = line.partition(":")
        for other in others.split(","):
            key = other.strip()
            words = [word for word in meant.split() if word != key]
            found.setdefault(f"{_SYNONYM}{key}", {}).update(dict.fromkeys(words))
    coding = _read("coding.txt").rstrip("\n").replace("\n", "\t")
    lines = sorted(f"{key}\t{' '.join(words)}".encode() for key, words in found.items() if key and words)
    return b"\n".join([coding.encode(), *lines, b""])


def _read(name: str) -> str:
    return Path(__file__).with_name("words").joinpath(name).read_text("utf-8")

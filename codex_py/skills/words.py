"""Word lists: words without meaning, words of change logs, translations, and everyday words for those of skills.

The lists are files in `words/`, in lower case and without accents. In those that end in `.tsv` each line has a word or
phrase, a tab, and the English words for it; the lines are in the order of their bytes, and searched as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

# Endings of plurals and cases, tried in this order.
_ENDINGS: Final = ("", "s", "en", "n", "e", "es", "er", "x", "i", "a")
# Endings of verbs and adjectives in Latin letters, the longest first: `revisa` and `revisar` have the same root.
_VERB_ENDINGS: Final = tuple(
    "aient amos ando aron emos idas idos ieren ieron iert iendo imos ions adas ados ait aba ada ado ant are ato ata ent"
    " ere ern ees est ida ido ire ons tet ten em en er ez ee ia io ir an ar as es et os st te a e i n o s t u".split()
)
_MIN_ROOT: Final = 5
_MAX_SAME_ROOT: Final = 40
_MIN_COMPOUND: Final = 5
# No word of the lists in Chinese, Japanese or Korean is longer.
_MAX_RUN: Final = 10
# Languages in other scripts: their stop words cannot be words of a language in Latin letters.
_OTHER_SCRIPTS: Final = ("ru", "zh")
# In what part of the lines of change logs the words of each line of `coding.txt` occur, about.
_PARTS: Final = (0.017, 0.0034, 0.00068)


class Words:
    """Looks words up."""

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
        lists = _read("coding.txt").splitlines()
        return {stem: part for part, stems in zip(_PARTS, lists, strict=True) for stem in stems.split()}

    def synonyms(self, token: str) -> tuple[str, ...]:
        """The words of skills for an English word of everyday life."""
        return _find(self._synonyms, token)

    def in_english(self, token: str, *, is_known: bool) -> tuple[str, ...]:
        """The English words for a word of another language, if it is one.

        Of one that is not known otherwise the endings are tried, and the parts of a compound.
        """
        if found := self._translate(token):
            return found
        if is_known or len(token) < _MIN_COMPOUND:
            return ()
        found = dict.fromkeys((*self._without_ending(token), *self._by_root(token)))
        return tuple(found) or self._by_parts(token)

    def phrases(self, token: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The phrases of other languages that begin with a word, each with its English words."""
        for line in lines_with(self._translations, f"{token} ".encode("utf-8", "replace")):
            rest, _, english = line.decode().partition("\t")
            yield f"{token} {rest}", tuple(english.split())

    def segments(self, run: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """A run without spaces cut at the longest words that are known; each part with its English words."""
        at, rest = 0, ""
        while at < len(run):
            for length in range(min(_MAX_RUN, len(run) - at), 0, -1):
                if english := self._translate(run[at : at + length]):
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

    def _translate(self, token: str) -> tuple[str, ...]:
        return _find(self._translations, token)

    def _without_ending(self, token: str) -> tuple[str, ...]:
        for ending in _ENDINGS[1:]:
            root = token.removesuffix(ending)
            if root != token and len(root) > 3 and (found := self._translate(root)):
                return found
        return ()

    def _by_root(self, token: str) -> tuple[str, ...]:
        """The English words of all words with the root of this one."""
        root = _root_of(token)
        found: dict[str, None] = {}
        for line in islice(lines_with(self._translations, root.encode("utf-8", "replace")), _MAX_SAME_ROOT):
            ending, _, english = line.decode().partition("\t")
            if _root_of(f"{root}{ending}") == root:
                found |= dict.fromkeys(english.split())
        return tuple(found)

    def _by_parts(self, token: str) -> tuple[str, ...]:
        for cut in range(3, len(token) - _MIN_COMPOUND + 1):
            for ending in ("", "en", "n", "s"):
                last = token[cut:].removesuffix(ending)
                if len(last) >= _MIN_COMPOUND and (found := self._translate(last)):
                    return (*self._translate(token[:cut]), *self._translate(token[: cut - 1]), *found)
        return ()

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
    def _translations(self) -> bytes:
        return _path_of("translations.tsv").read_bytes()

    @cached_property
    def _synonyms(self) -> bytes:
        return _path_of("synonyms.tsv").read_bytes()


def lines_with(lines: bytes, prefix: bytes) -> Iterator[bytes]:
    """The lines that begin with `prefix`, in order, without it; each line ends with a newline."""
    at = _first(lines, prefix)
    while lines.startswith(prefix, at):
        end = lines.find(b"\n", at)
        if end < 0:
            return
        yield lines[at + len(prefix) : end]
        at = end + 1


def _first(lines: bytes, prefix: bytes) -> int:
    """Where the first line begins that is not before `prefix`."""
    low, high = 0, len(lines)
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


def _find(lines: bytes, key: str) -> tuple[str, ...]:
    return next((tuple(line.decode().split()) for line in lines_with(lines, f"{key}\t".encode("utf-8", "replace"))), ())


def _root_of(word: str) -> str:
    for ending in _VERB_ENDINGS if word.isascii() and word.endswith(_VERB_ENDINGS) else ():
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_ROOT:
            return word[: -len(ending)]
    return word


def _read(name: str) -> str:
    return _path_of(name).read_text("utf-8")


def _path_of(name: str) -> Path:
    return Path(__file__).with_name("words") / name

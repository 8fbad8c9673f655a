"""Words of a text as skills are found by them: identifiers split, accents dropped, English endings cut off.

Chinese, Japanese and Korean, which have no spaces between words or endings that hide them, become pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

# Han, kana and Hangul.
CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002ffff"
_HIDDEN: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
# The capital comes first, so that the search jumps from one to the next.
_CAMEL: Final = "[A-Z](?<=[a-z0-9][A-Z])"
# Between texts that are cut into words at once. No text that is searched has it.
BREAK: Final = "\0"
_NO_STEMS: Final = ("", BREAK)
# A space for each ASCII character that is neither letter nor digit; what is not ASCII stays.
_ASCII: Final = bytes(code if code > 127 or chr(code).isalnum() or chr(code) == BREAK else 32 for code in range(256))
# `A` for a capital, `a` for what may stand before one inside an identifier.
_SHAPE: Final = bytes(
    32 if code > 127 or not chr(code).isalnum() else 65 if chr(code).isupper() else 97 for code in range(256)
)

# Nobody asks for longer ones.
MAX_WORD: Final = 40
# A word of two parts up to this length may be a name that people write in small letters: `GitHub`, `LinkedIn`.
_MAX_NAME: Final = 14
_MIN_STEM: Final = 4
_ENDINGS: Final = tuple(
    "ization isation ational fulness ousness iveness ations ation ement ment ness ing ed er or ion ly able ive al"
    " ful e".split()
)
# Without their endings these would be the stems of other words: `custom`, `let`, `past`, `auth`.
_WHOLE: Final = frozenset("author authorization construction customer letter paste terminal".split())
_SHORT_ENDINGS: Final = ("ing", "ed", "e")
# About 10 MB.
_MAX_WORDS: Final = 60_000


class StemTable(dict[str, str]):
    """The stems of words as they are written, separated by spaces.

    There is more than one for an identifier and for Chinese and the like, and none for a word of `stop`.
    """

    def __init__(self, stop: Collection[str] = ()) -> None:
        super().__init__()
        self._stop = stop

    def __missing__(self, word: str) -> str:
        if word == BREAK:
            return word
        if not word.isascii():
            stems = self._join(_parts_of(word))
        elif word.islower() or word.isdigit():
            stems = "" if len(word) > MAX_WORD or word in self._stop else stem(word)
        elif word[1:].islower() or (word.isupper() and word.isalpha()):
            stems = self[word.lower()]
        else:
            parts = _parts_of(word)
            stems = self._join([*parts, word.lower()] if is_name(word, parts) else parts)
        if len(word) <= MAX_WORD:
            if len(self) >= _MAX_WORDS:
                self.clear()
            self[word] = stems
        return stems

    def _join(self, parts: Iterable[str]) -> str:
        return " ".join([stem(part) for part in parts if len(part) <= MAX_WORD and part not in self._stop])

    def look_up(self, texts: Iterable[str]) -> list[str]:
        """For each word of some texts its stems, with `BREAK` between texts; many small ones at once are faster."""
        return [*map(self.__getitem__, _words_of(f" {BREAK} ".join(texts)))]

    def count(self, text: str) -> Counter[str]:
        """How often each stem occurs in a text."""
        return count_stems(self.look_up([text]))


def count_stems(found: Iterable[str]) -> Counter[str]:
    """How often each stem occurs in what was looked up."""
    counts = Counter(found)
    for stems in [stems for stems in counts if " " in stems or stems in _NO_STEMS]:
        count = counts.pop(stems)
        for part in stems.split():
            if part != BREAK:
                counts[part] += count
    return counts


def _words_of(text: str) -> list[str]:
    """The words of a text as they are written, each with what is not ASCII beside it."""
    return text.encode("utf-8", "replace").translate(_ASCII).decode().split()


def _parts_of(word: str) -> list[str]:
    plain = fold(prepare(word))
    return plain.split() if plain.isascii() else re.findall(r"[^\W_]+", plain)


def is_name(word: str, parts: Sequence[str]) -> bool:
    """Whether an identifier that is split into these parts may be a name that is also written as one word."""
    return len(parts) == 2 and len(word) <= _MAX_NAME


def fold(text: str) -> str:
    """Lower case without accents, as SQLite compares words."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def prepare(text: str) -> str:
    """A text with identifiers split into words, and what has no spaces between words as pairs. Lines stay lines."""
    if b"aA" in text.encode("utf-8", "replace").translate(_SHAPE):
        text = re.sub(_CAMEL, r" \g<0>", text)
    if text.isascii():
        return text
    return re.sub(f"[{CJK}]+", _spaced_pairs, without_hidden(text))


def without_hidden(text: str) -> str:
    """The text without characters that are not seen, which could part a word."""
    return text if text.isascii() else re.sub(f"[{_HIDDEN}]", "", text)


def pairs_of(run: str) -> list[str]:
    """A run of characters without spaces as pairs that overlap; two or one as they are."""
    return [run] if len(run) < 3 else [run[at : at + 2] for at in range(len(run) - 1)]


def _spaced_pairs(match: re.Match[str]) -> str:
    return f" {' '.join(pairs_of(match[0]))} "


def stem(word: str) -> str:
    """A word without its English ending: `releases`, `released` and `releasing` are `releas`. Others as they are."""
    if len(word) < _MIN_STEM or not word.isascii() or word.isdigit():
        return word
    word = _singular(word)
    if word in _WHOLE:
        return word
    for ending in _ENDINGS if word.endswith(_ENDINGS) else ():
        if word.endswith(ending) and len(word) - len(ending) >= (3 if ending in _SHORT_ENDINGS else 4):
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    if word[-1] == "y" and len(word) > 3:
        word = f"{word[:-1]}i"
    if word[-1] == "e" and len(word) > 4:
        word = word[:-1]
    return word


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word

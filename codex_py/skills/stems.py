"""Words of a text as skills are found by them: identifiers split, accents dropped, English endings cut off.

Chinese, Japanese and Korean, which have no spaces between words or endings that hide them, become pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

# Han, kana and Hangul.
CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0002ffff"
_HIDDEN: Final = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f"
# The capital comes first, so that the search jumps from one to the next.
_CAMEL: Final = "[A-Z](?<=[a-z0-9][A-Z])"
# A space for all that is neither letter nor digit.
_ASCII: Final = bytes(code if code < 128 and chr(code).isalnum() else 32 for code in range(256))
# `A` for a capital, `a` for what may stand before one inside an identifier.
_SHAPE: Final = bytes(
    32 if code > 127 or not chr(code).isalnum() else 65 if chr(code).isupper() else 97 for code in range(256)
)

_MIN_STEM: Final = 4
_ENDINGS: Final = tuple(
    "ization isation ational fulness ousness iveness ations ation ement ment ness ing ed er or ion ly able ive al"
    " ful e".split()
)
_SHORT_ENDINGS: Final = ("ing", "ed", "e")
_MAX_STEMS: Final = 5_000


class StemTable(dict[str, tuple[str, ...]]):
    """The stems of words as they are written: more than one for an identifier, and for Chinese and the like."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        parts = (word,) if word.islower() or word.isdigit() else prepare(word).lower().split()
        self[word] = stems = tuple(map(stem, parts))
        return stems


def words_of(text: str) -> list[str]:
    """The words of a text as they are written, without what accents there are."""
    if not text.isascii():
        # Most texts have but a dash or a quotation mark that is not ASCII.
        text = re.sub("[^\0-\x7f]+", lambda run: _plain(run[0]), text)
    if text.isascii():
        return text.encode().translate(_ASCII).decode().split()
    return re.findall(r"[^\W_]+", text)


def fold(text: str) -> str:
    """Lower case without accents, as SQLite compares words."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.lower())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


@lru_cache(_MAX_STEMS)
def _plain(run: str) -> str:
    """What is not ASCII, for words: folded, in pairs, and without signs."""
    return "".join(char if char.isalnum() else " " for char in fold(prepare(run)))


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


@lru_cache(_MAX_STEMS)
def stem(word: str) -> str:
    """A word without its English ending: `releases`, `released` and `releasing` are `releas`. Others as they are."""
    if len(word) < _MIN_STEM or not word.isascii() or word.isdigit():
        return word
    word = _singular(word)
    for ending in _ENDINGS:
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

"""What a text is searched by: groups of words of which any one will do, each with what it is worth."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final

from codex_py.protocol.value import Value
from codex_py.skills.stems import CJK, MAX_WORD, fold, is_name, pairs_of, prepare, stem, without_hidden
from codex_py.skills.words import Words

MAX_QUERY_CHARS: Final = 4000
MAX_GROUPS: Final = 40
# What a word is worth that stands for the written one; chosen by `scripts/measure_ranking`.
_TRANSLATED: Final = 0.9
_SYNONYM: Final = 0.5
_PAIR: Final = 0.6
_TWO_PARTS: Final = r"(?<![A-Za-z0-9])([A-Z]?[a-z0-9]+)([A-Z]+[a-z0-9]*)(?![A-Za-z0-9])"
# A pair that may reach from one word into the next.
_CROSSING_PAIR: Final = 0.3


class QueryGroup(Value):
    """A written word: the stems that stand for it with their worth, the best of which counts."""

    word: str
    stems: tuple[tuple[str, float], ...]


def read_query(text: str, words: Words, knows: Callable[[str], bool], *, synonym: float = _SYNONYM) -> list[QueryGroup]:
    """The groups of a text, each once, at most 40: of letters and digits only, none of them a stop word.

    Code fences do not count, and nothing beyond the first 4,000 characters. `knows` says whether a stem occurs in
    what is searched. A synonym of a word is worth `synonym` of it, less where there are several.
    """
    found: dict[str, QueryGroup] = {}
    tokens = _tokens(text, knows)
    stop = words.stop_words(tokens)
    # `charge` is a word of two languages.
    is_english = words.is_english(tokens)
    for at, token in enumerate(tokens):
        for phrase, english in words.phrases(token):
            if " ".join(tokens[at : at + phrase.count(" ") + 1]) == phrase:
                _add(found, phrase, [(word, _TRANSLATED) for word in english], stop)
        if not token.isascii() and re.match(f"[{CJK}]", token):
            _add_run(found, token, words, stop)
        elif token not in stop and len(token) <= MAX_WORD and (len(token) > 1 or token in "rc"):
            is_foreign = not (is_english and token.isascii())
            english = words.in_english(token, is_known=knows(stem(token))) if is_foreign else ()
            group = [(token, 1.0), *((word, _TRANSLATED) for word in english), *_synonyms(token, words, synonym)]
            for word in english:
                group += _synonyms(word, words, _TRANSLATED * synonym / math.sqrt(len(english)))
            _add(found, token, group, stop)
        if len(found) >= MAX_GROUPS:
            break
    return list(found.values())[:MAX_GROUPS]


def search_terms(text: str, words: Words) -> list[str]:
    """The stems of a text and of the English words for it, each once."""
    groups = read_query(text, words, lambda _: False)
    return list(dict.fromkeys(word for group in groups for word, worth in group.stems if worth >= _PAIR))


def _tokens(text: str, knows: Callable[[str], bool]) -> list[str]:
    text = without_hidden(_without_fences(text[: 4 * MAX_QUERY_CHARS]))[:MAX_QUERY_CHARS]
    text = re.sub(_TWO_PARTS, lambda name: _joined(name, knows), text)
    if not text.isascii():
        # Runs of Chinese and the like apart from words beside them, and in one piece.
        text = re.sub(f"[{CJK}]+", r" \g<0> ", text)
        return re.findall(r"[^\W_]+", fold(re.sub("[A-Z](?<=[a-z0-9][A-Z])", r" \g<0>", text)))
    return re.findall("[a-z0-9]+", prepare(text).lower())


def _joined(name: re.Match[str], knows: Callable[[str], bool]) -> str:
    """An identifier of two parts as one word, if skills have that word: `LinkedIn`."""
    lowered = name[0].lower()
    return lowered if is_name(name[0], name.groups()) and knows(stem(lowered)) else name[0]


def _without_fences(text: str) -> str:
    if "```" not in text and "~~~" not in text:
        return text
    return re.sub(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", " ", text, flags=re.MULTILINE | re.DOTALL)


def _synonyms(word: str, words: Words, worth: float) -> list[tuple[str, float]]:
    """What else may be meant by an English word: each is worth less where there is more."""
    found = words.synonyms(word)
    return [(other, worth / math.sqrt(len(found))) for other in found]


def _add_run(found: dict[str, QueryGroup], run: str, words: Words, stop: frozenset[str]) -> None:
    """A run of Chinese and the like: its known words with their pairs, and the pairs of the rest."""
    for part, english in words.segments(run):
        pairs = [(pair, _PAIR) for pair in pairs_of(part) if len(pair) > 1]
        if english:
            _add(found, part, [*pairs, *((word, _TRANSLATED) for word in english)], stop)
            continue
        for pair in pairs:
            _add(found, pair[0], [pair], stop)
    for pair in pairs_of(run):
        _add(found, pair, [(pair, _CROSSING_PAIR)], stop)


def _add(
    found: dict[str, QueryGroup],
    key: str,
    group: Iterable[tuple[str, float]],
    stop: frozenset[str],
) -> None:
    stems: dict[str, float] = {}
    for word, worth in group:
        if word not in stop:
            cut = stem(word)
            stems[cut] = max(worth, stems.get(cut, 0.0))
    if stems and (first := next(iter(stems))) not in found:
        found[first] = QueryGroup(key, tuple(stems.items()))

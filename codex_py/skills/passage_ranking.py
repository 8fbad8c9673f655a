"""The order of the passages of a skill for a question: BM25 over headings and text, counted within the skill.

Pure arithmetic. The weights were chosen by `scripts/measure_ranking`; the table is in docs/concepts/skills.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from codex_py.skills.query import QueryGroup, read_query
from codex_py.skills.stems import StemTable
from codex_py.skills.words import Words

_HEADING: Final = 2.0
_SHORTENING: Final = 0.75
_LENGTH: Final = 90
_SATURATION: Final = 1.5
# Of several words that stand for one, the best counts, and this part of the others.
_OTHERS: Final = 0.3
# A passage that has all words of a question gains this part of its score.
_COORDINATION: Final = 0.4
# What a word is worth that begins as the written one does: `verification` for `verified`.
_SAME_BEGINNING: Final = 0.6
_BEGINNING: Final = 5
_MAX_LONGER: Final = 4
_SYNONYM: Final = 0.3
# Those who ask about a skill have mostly read its `SKILL.md`.
_INSTRUCTIONS: Final = 0.4


class PassageWords(NamedTuple):
    """How often each stem occurs in the headings above a passage, and in its text."""

    heading: Counter[str]
    text: Counter[str]
    is_instructions: bool


def count_words(heading: str, text: str, stems: StemTable, *, is_instructions: bool) -> PassageWords:
    """The words of a passage; `is_instructions` for those of `SKILL.md`."""
    return PassageWords(stems.count(heading), stems.count(text), is_instructions)


def rank_passages(question: str, passages: Sequence[PassageWords], words: Words) -> list[tuple[int, float]]:
    """The passages that have a word of a question, by position, with their scores: the best first."""
    counts = Counter(stem for passage in passages for stem in passage.text.keys() | passage.heading.keys())
    groups = [_widen(group, counts) for group in read_query(question, words, counts.__contains__, synonym=_SYNONYM)]
    rarity = {
        stem: math.log(1 + (len(passages) - counts[stem] + 0.5) / (counts[stem] + 0.5))
        for group in groups
        for stem, _ in group.stems
    }
    scores = [(position, _score(passage, groups, rarity)) for position, passage in enumerate(passages)]
    return sorted(((position, score) for position, score in scores if score), key=lambda entry: (-entry[1], entry[0]))


def _score(passage: PassageWords, groups: Sequence[QueryGroup], rarity: dict[str, float]) -> float:
    shorter = 1 - _SHORTENING + _SHORTENING * passage.text.total() / _LENGTH
    score, found = 0.0, 0
    for group in groups:
        values: list[float] = []
        for stem, worth in group.stems:
            often = _HEADING * passage.heading[stem] + passage.text[stem] / shorter
            if often:
                values.append(worth * rarity[stem] * often * (_SATURATION + 1) / (_SATURATION + often))
        if values:
            found += 1
            score += max(values) + _OTHERS * (sum(values) - max(values))
    if not found:
        return 0.0
    score *= 1 + _COORDINATION * found / len(groups)
    return score * _INSTRUCTIONS if passage.is_instructions else score


def _widen(group: QueryGroup, known: Iterable[str]) -> QueryGroup:
    """The group with the known stems that begin as one of its own does."""
    found = dict(group.stems)
    for stem, worth in group.stems:
        if len(stem) >= _BEGINNING and stem.isascii():
            for other in known:
                if other.startswith(stem[:_BEGINNING]) and abs(len(other) - len(stem)) <= _MAX_LONGER:
                    found.setdefault(other, worth * _SAME_BEGINNING)
    return group.replace(stems=tuple(found.items()))

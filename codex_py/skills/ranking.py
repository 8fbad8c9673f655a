"""The order of skills for a query: how well their words fit it, and what is known of them beforehand.

Pure arithmetic: the digest brings the numbers, `priors` what is known of each skill. The weights were chosen by
`scripts/measure_ranking`; the table is in docs/concepts/skills.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from heapq import nlargest
from typing import Final, NamedTuple

from codex_py.skills.query import QueryGroup
from codex_py.skills.term_weights import DESCRIBED, WORTH

# Of several words that stand for one, the best counts, and this part of the others.
_OTHERS: Final = 0.3
# A skill that has all words of a query gains this part of its score.
_COORDINATION: Final = 0.7
# A prior is between 0 and 1 and raises a score by at most this part of it: it cannot make a skill fit.
PRIOR_WEIGHT: Final = 0.25
# Of words that occur in many skills only as many count as can be looked at in time; the rarest ones always do.
_MAX_ROWS: Final = 60_000
_MIN_GROUPS: Final = 4

# The evidence that is needed to suggest anything; it grows with the number of skills as the scores do.
_CLEAR: Final = 0.73
_CLEAR_GROWTH: Final = 0.258
# What an everyday word counts as evidence, and how much each further word adds that is none.
_EVERYDAY: Final = 0.6
_FIRST: Final = 0.6
_EACH: Final = 0.2
_MAX_EACH: Final = 4
# Behind the best one only what comes near to it is suggested.
NEAR_BEST: Final = 0.3

# Added to a sum of scores for each word that is found, so that one number holds both.
_FOUND: Final = 65536.0


class Postings(NamedTuple):
    """For each skill that has a stem its number times 256, and the weight; `rarity` is higher for what fewer have."""

    rarity: float
    entries: Sequence[int]


class Match(NamedTuple):
    """How well a skill fits: by words that say something about the kind of work, and by everyday words."""

    number: int
    specific: float
    specific_words: int
    everyday: float
    everyday_words: int

    @property
    def text(self) -> float:
        """The score of the words alone."""
        return self.specific + self.everyday

    @property
    def evidence(self) -> float:
        """How clearly it fits, whatever is known of the skill."""
        words = _FIRST + _EACH * min(self.specific_words, _MAX_EACH)
        return (self.specific + _EVERYDAY * self.everyday) * words


class Prior(NamedTuple):
    """What is known of a skill before anything is asked: from 0 to 1, with the reasons in words."""

    value: float = 0.0
    reasons: tuple[str, ...] = ()


class RankedSkill(NamedTuple):
    """A skill by its number, with its score and how clearly it fits."""

    number: int
    score: float
    evidence: float


def match_skills(
    groups: Sequence[QueryGroup], find: Callable[[str], Postings], visible: Container[int], limit: int
) -> list[Match]:
    """The best of the visible skills by the words of a query, `limit` at most; `find` gives the postings of a stem."""
    sums: tuple[dict[int, float], dict[int, float]] = ({}, {})
    left = _MAX_ROWS
    sizes = [sum(len(find(stem).entries) for stem, _ in group.stems) for group in groups]
    for count, at in enumerate(sorted(range(len(groups)), key=lambda at: (sizes[at], at))):
        left -= sizes[at]
        if left < 0 and count >= _MIN_GROUPS:
            break
        _add_group(groups[at], find, sums[groups[at].is_everyday])
    specific, everyday = sums
    scores = {
        number: (specific.get(number, 0.0) % _FOUND + everyday.get(number, 0.0) % _FOUND)
        * (
            1
            + _COORDINATION * (specific.get(number, 0.0) // _FOUND + everyday.get(number, 0.0) // _FOUND) / len(groups)
        )
        for number in specific.keys() | everyday.keys()
        if number in visible
    }
    best = nlargest(limit, scores, key=lambda number: (scores[number], -number))
    return [
        Match(
            number,
            specific.get(number, 0.0) % _FOUND,
            int(specific.get(number, 0.0) // _FOUND),
            everyday.get(number, 0.0) % _FOUND,
            int(everyday.get(number, 0.0) // _FOUND),
        )
        for number in best
    ]


def _add_group(group: QueryGroup, find: Callable[[str], Postings], sums: dict[int, float]) -> None:
    """Add what a group is worth in each skill that has one of its stems."""
    if len(group.stems) == 1:
        ((stem, worth),) = group.stems
        postings = find(stem)
        factor = worth * postings.rarity / WORTH
        for entry in postings.entries:
            number = entry >> 8
            sums[number] = sums.get(number, 0.0) + factor * (entry & WORTH) + _FOUND
        return
    best: dict[int, float] = {}
    total: dict[int, float] = {}
    for stem, worth in group.stems:
        postings = find(stem)
        factor = worth * postings.rarity / WORTH
        for entry in postings.entries:
            number = entry >> 8
            score = factor * (entry & WORTH)
            total[number] = total.get(number, 0.0) + score
            if score > best.get(number, 0.0):
                best[number] = score
    for number, score in best.items():
        sums[number] = sums.get(number, 0.0) + score + _OTHERS * (total[number] - score) + _FOUND


def rank(matches: Sequence[Match], words: int, prior: Callable[[int], float]) -> list[RankedSkill]:
    """The matches of a query of `words` words, the best first; equal ones by number. Same input, same output."""
    ranked: list[RankedSkill] = []
    for match in matches:
        found = match.specific_words + match.everyday_words
        score = match.text * (1 + _COORDINATION * found / words) * (1 + PRIOR_WEIGHT * prior(match.number))
        ranked.append(RankedSkill(match.number, score, match.evidence))
    return sorted((skill for skill in ranked if skill.score > 0), key=lambda skill: (-skill.score, skill.number))


def clear_winners(ranked: Sequence[RankedSkill], total: int, limit: int) -> list[RankedSkill]:
    """The skills that clearly fit, of `total` there are, at most `limit`: none when none of the first ones does."""
    first = ranked[:limit]
    if max((skill.evidence for skill in first), default=0.0) < _CLEAR + _CLEAR_GROWTH * math.log(total + 1):
        return []
    least = first[0].score * NEAR_BEST
    return [skill for skill in first if skill.score >= least]


def reasons_for(
    match: Match, groups: Sequence[QueryGroup], find: Callable[[str], Postings], prior: Prior
) -> tuple[str, ...]:
    """Why a skill stands where it does, in words."""
    named: dict[str, str] = {}
    others: dict[str, str] = {}
    for group in groups:
        # The written word first, then what stands for it.
        for stem, worth in sorted(group.stems, key=lambda stem: -stem[1]):
            shown = f"`{group.word}`" if worth == 1.0 else f"`{stem}` for `{group.word}`"
            for entry in find(stem).entries:
                if entry >> 8 == match.number:
                    (named if entry & DESCRIBED else others).setdefault(group.word, shown)
    lines = [f"its name or description has {', '.join(named.values())}"] if named else []
    if rest := [shown for word, shown in others.items() if word not in named]:
        lines.append(f"its text has {', '.join(rest)}")
    lines.append(f"words {match.text:.1f}, of which everyday ones {match.everyday:.1f}")
    return (*lines, *prior.reasons)

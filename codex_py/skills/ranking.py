"""The order of skills for a query, and whether any of them clearly fits.

What counts is how well their words fit, what is known of them beforehand, and how far the query is from everyday talk
about code, in which the words of a skill mostly stand by coincidence. Pure arithmetic: the digest brings the numbers,
`priors` what is known of each skill. The weights were chosen by `scripts/measure_ranking`; the table is in
docs/concepts/skills.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from heapq import nlargest
from itertools import islice
from typing import Final, NamedTuple

from codex_py.protocol.value import Value
from codex_py.skills.query import MAX_QUERY_CHARS, QueryGroup
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

# What is needed to suggest anything; it grows with the number of skills as the scores do.
_CLEAR: Final = 5.05
_CLEAR_GROWTH: Final = 0.14
_MIN_EVIDENCE: Final = 0.3
# How much each further word adds to the evidence.
_FIRST: Final = 0.6
_EACH: Final = 0.2
_MAX_EACH: Final = 4
# Behind the best one only what comes near to it is suggested.
NEAR_BEST: Final = 0.3

# Talk about code is known by its words, which are those of change logs rather than of skills, by the files and
# identifiers it names, and as it is not about the people who write.
# What each counts beside the logarithm of the evidence for a skill.
_RATIO: Final = 1.3
_PERSON: Final = 0.75
_MAX_PERSONS: Final = 2
_MARK: Final = -0.65
_MAX_MARKS: Final = 3
_WORDS: Final = 0.35
_MAX_WORDS: Final = 9
# Added to both parts of a ratio, so that a word that is rare in both says nothing.
_RARE_IN_SKILLS: Final = 0.01
_RARE_IN_CHANGE_LOGS: Final = 0.001
# Stems that only may stand for a word say nothing about it.
_MIN_WORTH: Final = 0.6

_PERSONS: Final = (
    r"(?i)\b(?:i|we|my|our|us|me|ich|wir|mein\w{0,2}|unser\w{0,2}|mi|mis|nuestr\w{1,2}|je|nous|notre|nos|mon|ma|io|mio|mia|eu"
    r"|meu|minha|я|мой|моя|мы|наш\w{0,2})\b|我|私|僕|저는|우리"
)
_ENDINGS: Final = (
    "py|js|ts|jsx|tsx|go|rs|java|kt|swift|c|h|cc|cpp|rb|php|cs|json|toml|yaml|yml|md|css|html|sql|xml|lock|txt|diff|cfg"
    "|ini|sh"
)
# Quoted code, identifiers, calls, paths, names of files, options, errors, operators.
_MARKS: Final = (
    r"`[^`\n]{1,200}`|\b[a-z]{1,40}[A-Z]\w{0,40}|\b[A-Z][a-z0-9]{1,40}[A-Z]\w{0,40}|\b[A-Za-z0-9]{1,40}_\w{1,40}|\w\(\)"
    rf"|(?<![\w./-])[a-z0-9_.@~-]{{0,60}}/[a-z0-9_./-]{{1,60}}|\b\w{{1,60}}\.(?:{_ENDINGS})\b|--[a-z]\w{{0,40}}"
    r"|\b[A-Z][a-z]{1,40}(?:Error|Exception)\b|::|=>|==|\.\w{1,40}\("
)

# Added to a sum of scores for each word that is found, so that one number holds both.
_FOUND: Final = 65536.0


class Postings(Value):
    """For each skill that has a stem its number times 256, and the weight; `rarity` is higher for what fewer have."""

    rarity: float
    entries: Sequence[int]


class Match(NamedTuple):
    """How well a skill fits: the score of the words alone, and how many it has."""

    number: int
    text: float
    words: int

    @property
    def evidence(self) -> float:
        """How clearly it fits, whatever is known of the skill."""
        return self.text * (_FIRST + _EACH * min(self.words, _MAX_EACH))


class Prior(Value):
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
    sums: dict[int, float] = {}
    left = _MAX_ROWS
    sizes = [sum(len(find(stem).entries) for stem, _ in group.stems) for group in groups]
    for count, at in enumerate(sorted(range(len(groups)), key=lambda at: (sizes[at], at))):
        left -= sizes[at]
        if left < 0 and count >= _MIN_GROUPS:
            break
        _add_group(groups[at], find, sums)
    found = [Match(number, total % _FOUND, int(total // _FOUND)) for number, total in sums.items() if number in visible]
    return nlargest(limit, found, key=lambda match: (_worth(match, len(groups)), -match.number))


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
        score = _worth(match, words) * (1 + PRIOR_WEIGHT * prior(match.number))
        ranked.append(RankedSkill(match.number, score, match.evidence))
    return sorted((skill for skill in ranked if skill.score > 0), key=lambda skill: (-skill.score, skill.number))


def _worth(match: Match, words: int) -> float:
    """The score of a match of a query of so many words."""
    return match.text * (1 + _COORDINATION * match.words / words)


def distance_from_code(
    text: str,
    groups: Sequence[QueryGroup],
    find: Callable[[str], Postings],
    total: int,
    logs: Mapping[str, float],
    *,
    counts_marks: bool = True,
) -> float:
    """How far a text is from talk about code, to be added to the logarithm of the evidence for a skill.

    `groups` are its words, `find` returns the skills that have a stem, of `total` there are; `logs` says in what part
    of the lines of change logs a stem occurs. Without `counts_marks` it may name files all the same.
    """
    text = text[:MAX_QUERY_CHARS]
    persons = sum(1 for _ in islice(re.finditer(_PERSONS, text), _MAX_PERSONS))
    # A name such as `LinkedIn` is written like an identifier.
    names = {group.word for group in groups}
    found = (mark for mark in re.finditer(_MARKS, text if counts_marks else "") if mark[0].lower() not in names)
    marks = sum(1 for _ in islice(found, _MAX_MARKS))
    # Pairs of characters that reach from one word into the next are no words.
    written = sum(1 for group in groups if any(worth > _MIN_WORTH for _, worth in group.stems))
    words = _WORDS * math.log(max(1, min(written, _MAX_WORDS)))
    return _PERSON * persons + _MARK * marks + words + _RATIO * _ratio(groups, find, total, logs)


def _ratio(
    groups: Sequence[QueryGroup], find: Callable[[str], Postings], total: int, logs: Mapping[str, float]
) -> float:
    """How much more frequent the words are in descriptions of skills than in change logs: mean of the logarithms."""
    ratios: list[float] = []
    for group in groups:
        stems = [stem for stem, worth in group.stems if worth >= _MIN_WORTH]
        in_logs = max((logs.get(stem, 0.0) for stem in stems), default=0.0)
        if not in_logs and not any(find(stem).entries for stem, _ in group.stems):
            continue
        described = max((sum(entry & DESCRIBED for entry in find(stem).entries) for stem in stems), default=0)
        in_skills = described / DESCRIBED / max(1, total)
        ratios.append(math.log((in_skills + _RARE_IN_SKILLS) / (in_logs + _RARE_IN_CHANGE_LOGS)))
    return sum(ratios) / len(ratios) if ratios else 0.0


def clear_winners(ranked: Sequence[RankedSkill], total: int, limit: int, distance: float) -> list[RankedSkill]:
    """The skills that clearly fit, of `total` there are, at most `limit`: none when none of the first ones does.

    `distance` is how far the message is from talk about code.
    """
    first = ranked[:limit]
    evidence = max((skill.evidence for skill in first), default=0.0)
    if math.log(_MIN_EVIDENCE + evidence) + distance < _CLEAR + _CLEAR_GROWTH * math.log(total + 1):
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
    lines.append(f"words {match.text:.1f}")
    return (*lines, *prior.reasons)

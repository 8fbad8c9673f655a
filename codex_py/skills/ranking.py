"""The order of skills for a query: BM25 over weighted fields, the best passage, and what is known beforehand.

Pure arithmetic: the search index brings the numbers, `priors` what is known of each skill. The weights were chosen by
`scripts/measure_ranking`; the table is in docs/concepts/skills.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

# What a match in each field of the index is worth.
FIELD_WEIGHTS: Final[Mapping[str, float]] = MappingProxyType(
    {"name": 4.0, "description": 3.0, "short_description": 2.0, "headings": 1.0, "files": 0.7, "body": 0.5}
)
# The best passage of a skill beside the whole of it.
PASSAGE_WEIGHT: Final = 0.5
REFERENCE_WEIGHT: Final = 0.6
# A prior is between 0 and 1 and raises a score by at most this part of it: it cannot make a skill fit.
PRIOR_WEIGHT: Final = 0.25

# The evidence that is needed to suggest anything grows with the number of skills as the scores do.
_CLEAR: Final = 4.5
# Behind the best one only what comes near to it is suggested.
NEAR_BEST: Final = 0.3


class Passage(NamedTuple):
    """How well a part of a file fits; `is_body` for the `SKILL.md` itself."""

    file: str
    start: int
    end: int
    score: float
    is_body: bool


class FieldFit(NamedTuple):
    """BM25 of a skill over its weighted fields, and the part of it that is what the skill says of itself."""

    score: float = 0.0
    named: float = 0.0


class Candidate(NamedTuple):
    """A skill that may fit: for all words of a query, and for those that are not everyday words alone.

    `specific_words` are those of the latter that the skill's name or description has; `passages` are its best ones.
    """

    path: str
    fit: FieldFit = FieldFit()
    specific: FieldFit = FieldFit()
    specific_words: tuple[str, ...] = ()
    passages: Sequence[Passage] = ()


class Prior(NamedTuple):
    """What is known of a skill before anything is asked: from 0 to 1, with the reasons in words."""

    value: float = 0.0
    reasons: tuple[str, ...] = ()


class RankedSkill(NamedTuple):
    """A skill with its score and the reasons for it; `evidence` says how clearly it fits, whatever is known of it."""

    path: str
    score: float
    evidence: float
    reasons: tuple[str, ...]


_NO_PRIOR: Final = Prior()


def rank(candidates: Sequence[Candidate], priors: Mapping[str, Prior]) -> list[RankedSkill]:
    """The candidates that fit at all, the best first; equal ones by their paths. The same input, the same output."""
    ranked = [_scored(candidate, priors.get(candidate.path, _NO_PRIOR)) for candidate in candidates]
    return sorted((skill for skill in ranked if skill.score > 0), key=lambda skill: (-skill.score, skill.path))


def clear_winners(ranked: Sequence[RankedSkill], total: int, limit: int) -> list[RankedSkill]:
    """The skills that clearly fit, of `total` there are: none when not even the best does."""
    if not ranked or ranked[0].evidence < _CLEAR * math.log(total + 1):
        return []
    least = ranked[0].score * NEAR_BEST
    return [skill for skill in ranked[:limit] if skill.score >= least]


def _scored(candidate: Candidate, prior: Prior) -> RankedSkill:
    reasons: list[str] = []
    passage = max(candidate.passages, key=_weighted, default=None)
    in_passage = PASSAGE_WEIGHT * _weighted(passage) if passage else 0.0
    text = candidate.fit.score + in_passage
    if candidate.specific_words:
        reasons.append(f"its name or description has {', '.join(f'`{word}`' for word in candidate.specific_words)}")
    reasons.append(f"fields {candidate.fit.score:.1f}, of which name and description {candidate.fit.named:.1f}")
    if passage:
        name = passage.file.rpartition("/")[2]
        reasons.append(f"best passage {in_passage:.1f} ({name}, lines {passage.start}-{passage.end})")
    agreement = 0.6 + 0.2 * min(len(candidate.specific_words), 3)
    evidence = (text + candidate.fit.named + candidate.specific.score + candidate.specific.named) * agreement
    reasons += prior.reasons
    return RankedSkill(candidate.path, text * (1 + PRIOR_WEIGHT * prior.value), evidence, tuple(reasons))


def _weighted(passage: Passage) -> float:
    return passage.score * (1.0 if passage.is_body else REFERENCE_WEIGHT)

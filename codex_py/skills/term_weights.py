"""What each word of a skill is worth: by the field it stands in, how often, and how long the field is.

The field part of BM25F. How rare a word is among all skills is added when a query is answered.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from codex_py.protocol.value import Value
from codex_py.skills.model import Skill
from codex_py.skills.stems import StemTable

# A weight is 1 to 127; with this bit the word is in the name or the descriptions.
DESCRIBED: Final = 0x80
WORTH: Final = 0x7F


class FieldWeight(Value):
    """The weight of a word in a field, how much a long field reduces it, and the usual number of words."""

    worth: float
    shortening: float
    length: int


# Chosen by `scripts/measure_ranking`; the table is in docs/concepts/skills.md.
FIELDS: Final[Mapping[str, FieldWeight]] = MappingProxyType(
    {
        "name": FieldWeight(4.0, 0.3, 3),
        "description": FieldWeight(3.0, 0.5, 28),
        "short_description": FieldWeight(2.0, 0.3, 7),
        "headings": FieldWeight(1.5, 0.5, 45),
        "files": FieldWeight(0.7, 0.5, 20),
        "body": FieldWeight(0.5, 0.75, 540),
    }
)
_DESCRIBING: Final = ("name", "description", "short_description")
# Where a word stops gaining by being repeated.
_SATURATION: Final = 2.0
_MAX_TERMS: Final = 4000
# A word counts at most so often in a field, so that none wins by being repeated; the field is long all the same.
_MAX_COUNT: Final = 20
# A description whose words occur more often than this on average counts less.
_MAX_REPEATS: Final = 3


class SkillTerms(NamedTuple):
    """The stems of a skill, separated by spaces, and the weight of each.

    `crc` is that of what it says of itself, `stamp` that of its `SKILL.md`.
    """

    path: str
    crc: int
    stamp: str
    terms: str
    weights: bytes


def described_by(skill: Skill) -> dict[str, str]:
    """The texts in which a skill describes itself, by field."""
    short = skill.short_description or (skill.interface and skill.interface.short_description) or ""
    return {"name": skill.name, "description": skill.description, "short_description": short}


def described_crc(skill: Skill) -> int:
    """A checksum of what a skill says of itself: another description may come from `agents/openai.yaml`."""
    return zlib.crc32("\0".join(described_by(skill).values()).encode("utf-8", "replace"))


def weigh(fields: Mapping[str, Counter[str]]) -> dict[str, int]:
    """The stems of all fields with their weights, the heaviest 4,000; each field comes as the counts of its stems."""
    totals: defaultdict[str, float] = defaultdict(float)
    for name, counts in fields.items():
        if name != "body":
            most, worth = _MAX_COUNT, _worth_of(name, counts.total())
            if name in _DESCRIBING and counts:
                most, worth = 1, worth * min(1.0, _MAX_REPEATS * len(counts) / counts.total())
            for stem, count in counts.items():
                totals[stem] += worth * min(count, most)
    body = fields.get("body", Counter())
    worth = _worth_of("body", body.total())
    # Most words are in the body alone, and few are there often.
    by_count = [_weight(worth * min(count, _MAX_COUNT)) for count in range(max(body.values(), default=0) + 1)]
    weights = dict(zip(body, map(by_count.__getitem__, body.values()), strict=True))
    often = body.get
    for stem, total in totals.items():
        weights[stem] = _weight(total + worth * min(often(stem, 0), _MAX_COUNT))
    if len(weights) > _MAX_TERMS:
        weights = dict(sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))[:_MAX_TERMS])
    for stem in weights.keys() & {stem for name in _DESCRIBING for stem in fields.get(name, Counter())}:
        weights[stem] |= DESCRIBED
    return weights


def describe(skill: Skill, stems: StemTable) -> dict[str, int]:
    """The weights of what a skill says of itself alone."""
    return weigh({name: stems.count(text) for name, text in described_by(skill).items()})


def _worth_of(name: str, length: int) -> float:
    """The worth of each word in a field of so many words."""
    field = FIELDS[name]
    return field.worth / (1 - field.shortening + field.shortening * length / field.length)


def _weight(total: float) -> int:
    return int(WORTH * total / (_SATURATION + total)) or 1

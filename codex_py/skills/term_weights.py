"""What each word of a skill is worth: by the field it stands in, how often, and how long the field is.

The field part of BM25F. How rare a word is among all skills is added when a query is answered.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from codex_py.skills.model import Skill
from codex_py.skills.stems import StemTable, words_of

# A weight is 1 to 127; with this bit the word is in the name or the descriptions.
DESCRIBED: Final = 0x80
WORTH: Final = 0x7F


class FieldWeight(NamedTuple):
    """The weight of a word in a field, how much a long field reduces it, and the usual number of words."""

    worth: float
    shortening: float
    length: int


# Chosen by `scripts/measure_ranking`; the table is in docs/concepts/skills.md.
FIELDS: Final[Mapping[str, FieldWeight]] = MappingProxyType(
    {
        "name": FieldWeight(4.0, 0.3, 3),
        "description": FieldWeight(3.0, 0.5, 45),
        "short_description": FieldWeight(2.0, 0.3, 10),
        "headings": FieldWeight(1.5, 0.5, 60),
        "files": FieldWeight(0.7, 0.5, 20),
        "body": FieldWeight(0.5, 0.75, 900),
    }
)
_DESCRIBING: Final = ("name", "description", "short_description")
# Where a word stops gaining by being repeated.
_SATURATION: Final = 2.0
_MAX_TERMS: Final = 4000
# A word counts at most so often in a field, so that none wins by being repeated; the field is long all the same.
_MAX_DESCRIBED: Final = 3
_MAX_COUNT: Final = 20


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


def weigh(fields: Mapping[str, Iterable[str]], stems: StemTable) -> dict[str, int]:
    """The stems of all fields with their weights, the heaviest 4,000; each field comes as its texts."""
    totals: defaultdict[str, float] = defaultdict(float)
    described: set[str] = set()
    for name, texts in fields.items():
        written = [word for text in texts for word in words_of(text)]
        field = FIELDS[name]
        most = _MAX_DESCRIBED if name in _DESCRIBING else _MAX_COUNT
        worth = field.worth / (1 - field.shortening + field.shortening * len(written) / field.length)
        for word, count in Counter(written).items():
            part = worth * (count if count < most else most)
            for stem in stems[word]:
                totals[stem] += part
        if name in _DESCRIBING:
            described.update(totals)
    if len(totals) > _MAX_TERMS:
        for stem in sorted(totals, key=lambda stem: (-totals[stem], stem))[_MAX_TERMS:]:
            del totals[stem]
    weights = {stem: int(WORTH * total / (_SATURATION + total)) or 1 for stem, total in totals.items()}
    for stem in described.intersection(weights):
        weights[stem] |= DESCRIBED
    return weights


def describe(skill: Skill, stems: StemTable) -> dict[str, int]:
    """The weights of what a skill says of itself alone."""
    return weigh({name: (text,) for name, text in described_by(skill).items()}, stems)

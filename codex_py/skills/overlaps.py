"""Skills whose descriptions say nearly the same, by the stems that the ranking index finds them by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from codex_py.skills.stems import StemTable, stem

# The share of all their stems that two descriptions have in common, and how many there must be to compare.
_ALIKE: Final = 0.7
_MIN_STEMS: Final = 5
# Words of nearly every description.
_COMMON: Final = frozenset(
    map(
        stem,
        "a an and any are as at by do for from how in into is it its of on or the this to "
        "use used using user want wants when with you your".split(),
    )
)


def find_overlaps(descriptions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each skill whose description is nearly that of others, the keys of these, the nearest first."""
    table = StemTable()
    stems = {key: frozenset(table.count(text.lower())) - _COMMON for key, text in descriptions.items()}
    comparable = [key for key, found in stems.items() if len(found) >= _MIN_STEMS]
    near: dict[str, list[tuple[float, str]]] = {}
    for at, key in enumerate(comparable):
        for other in comparable[at + 1 :]:
            likeness = _likeness(stems[key], stems[other])
            if likeness >= _ALIKE:
                near.setdefault(key, []).append((-likeness, other))
                near.setdefault(other, []).append((-likeness, key))
    return {key: tuple(other for _, other in sorted(found)) for key, found in near.items()}


def _likeness(first: frozenset[str], second: frozenset[str]) -> float:
    # Cheap to rule out: the smaller set cannot share more than all of itself.
    if min(len(first), len(second)) < _ALIKE * max(len(first), len(second)):
        return 0.0
    shared = len(first & second)
    return shared / (len(first) + len(second) - shared)

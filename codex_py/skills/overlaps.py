"""Skills whose descriptions say nearly the same, by the words that two of them share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Final

# The share of all their words that two descriptions have in common, and how many there must be to compare.
_ALIKE: Final = 0.7
_MIN_WORDS: Final = 5
# Words of nearly every description.
_COMMON: Final = frozenset(
    "a an and any are as at by do for from how in into is it its of on or the this to use used user using want wants"
    " when with you your".split()
)


def find_overlaps(descriptions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """For each skill whose description is nearly that of others, the keys of these, the nearest first."""
    words = {key: frozenset(re.findall(r"\w+", text.lower())) - _COMMON for key, text in descriptions.items()}
    near: dict[str, list[tuple[float, str]]] = {}
    for (first, mine), (second, others) in combinations(words.items(), 2):
        shared = len(mine & others)
        if min(len(mine), len(others)) >= _MIN_WORDS and shared >= _ALIKE * len(mine | others):
            likeness = shared / len(mine | others)
            near.setdefault(first, []).append((-likeness, second))
            near.setdefault(second, []).append((-likeness, first))
    return {key: tuple(other for _, other in sorted(found)) for key, found in near.items()}

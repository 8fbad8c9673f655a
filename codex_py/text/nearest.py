"""The known name that somebody meant by one that does not exist: flags, keys, values, commands, skills, servers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MAX_LENGTH: Final = 64
# One letter in a word of two says nothing; a word this short is only taken for another spelling.
_MIN_TYPO: Final = 3
_MIN_SUBSTRING: Final = 4


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most alike, when it is near enough to be a typing error."""
    return next(iter(nearest_names(name, known, limit=1)), None)


def nearest_names(name: str, known: Iterable[str], *, limit: int) -> list[str]:
    """Up to `limit` known names that may be meant, the most alike first; empty when none is near enough.

    Case, `-`, `_` and spaces do not count. A whole part of a name (`full` of `danger-full-access`) is near when it
    is a part of one name only; so is the part of a skill or tool behind its namespace.
    """
    wanted = _folded(name[:_MAX_LENGTH])
    ranked: list[tuple[int, str]] = []
    substrings: list[str] = []
    for other in dict.fromkeys(known):
        forms = {_folded(other[:_MAX_LENGTH]), _folded(other.rpartition(":")[2][:_MAX_LENGTH])}
        distance, shortest = min((edit_distance(wanted, form), min(len(wanted), len(form))) for form in forms)
        if distance == 0 or (shortest >= _MIN_TYPO and distance <= max(1, shortest // 3)):
            ranked.append((distance, other))
        elif _is_substring(name, other):
            substrings.append(other)
    found = [other for _, other in sorted(ranked)]
    return (found or (substrings if len(substrings) == 1 else []))[:limit]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`` did you mean `x`? ``, or nothing when no known name is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near else ""


def edit_distance(first: str, second: str) -> int:
    """Letters to insert, delete, replace or swap with their neighbour to get from one text to the other."""
    before: list[int] = []
    last = list(range(len(second) + 1))
    for i, letter in enumerate(first, 1):
        row = [i]
        for j, against in enumerate(second, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == second[j - 2] and first[i - 2] == against:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before, last = last, row
    return last[-1]


def _folded(name: str) -> str:
    """A name without what people write in different ways; one of nothing else stays as it is."""
    lowered = name.lower()
    return "".join(letter for letter in lowered if letter not in "-_ ") or lowered


def _is_substring(name: str, other: str) -> bool:
    """Whether one of the two is a whole part of the other, as `full-access` of `danger-full-access`."""
    wanted, whole = _separated(name), _separated(other)
    return min(len(wanted), len(whole)) >= _MIN_SUBSTRING + 2 and (wanted in whole or whole in wanted)


def _separated(name: str) -> str:
    """A name's words between single dashes, one before and one behind, so that parts can be looked for."""
    words = "".join(letter if letter.isalnum() else " " for letter in name[:_MAX_LENGTH].lower()).split()
    return f"-{'-'.join(words)}-" if words else ""

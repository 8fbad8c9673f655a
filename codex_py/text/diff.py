"""Unified diffs for people to read. Linear in the size of the texts, whatever is in them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

MAX_DIFF_BYTES: Final = 64 * 1024
_CONTEXT: Final = 3
_EXACT_WORK: Final = 2_000_000
_NO_NEWLINE: Final = "\\ No newline at end of file"

Change: TypeAlias = tuple[int, int, int, int]
"""Old lines from..to become new lines from..to; from 0, ends excluded."""


def unified_diff(old: str, new: str, *, old_name: str, new_name: str, limit: int = MAX_DIFF_BYTES) -> str:
    """A unified diff of at most about `limit` bytes, cut at a line; empty when nothing changed."""
    if old == new:
        return ""
    before, after = old.split("\n"), new.split("\n")
    lines = [f"--- {old_name}", f"+++ {new_name}"]
    size = sum(len(line) + 1 for line in lines)
    for line in _body(before, after):
        size += len(line.encode(errors="replace")) + 1
        if size > limit:
            lines.append("[the rest of this diff is left out]")
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """The changes between two lists of lines, in order.

    Lines that occur once on both sides are the fixed points (as in a patience diff). The gaps between those are
    compared line by line while the work for that is small; beyond it a gap counts as replaced whole.
    """
    found: list[Change] = []
    work = _EXACT_WORK
    for gap in _gaps(old, new):
        a1, a2, b1, b2 = gap
        cost = (a2 - a1) * (b2 - b1) * min(a2 - a1, b2 - b1)
        if 0 < cost <= work and max(a2 - a1, b2 - b1) > 1:
            work -= cost
            found += _exact(old, new, gap)
        else:
            found.append(gap)
    return found


def _gaps(old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    a, b = 0, 0
    for fixed_a, fixed_b in [*_fixed_points(old, new), (len(old), len(new))]:
        a, b, end_a, end_b = _trimmed(old, new, (a, fixed_a, b, fixed_b))
        if a < end_a or b < end_b:
            yield a, end_a, b, end_b
        a, b = fixed_a, fixed_b


def _trimmed(old: Sequence[str], new: Sequence[str], gap: Change) -> tuple[int, int, int, int]:
    a1, a2, b1, b2 = gap
    while a1 < a2 and b1 < b2 and old[a1] == new[b1]:
        a1, b1 = a1 + 1, b1 + 1
    while a1 < a2 and b1 < b2 and old[a2 - 1] == new[b2 - 1]:
        a2, b2 = a2 - 1, b2 - 1
    return a1, b1, a2, b2


def _fixed_points(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest run of lines, unique on both sides, that keep their order."""
    in_old, in_new = Counter(old), Counter(new)
    position = {line: index for index, line in enumerate(new) if in_new[line] == 1}
    pairs = [(index, position[line]) for index, line in enumerate(old) if in_old[line] == 1 and line in position]
    tops: list[int] = []
    piles: list[int] = []
    back: list[int] = []
    for number, (_, index) in enumerate(pairs):
        pile = bisect_left(tops, index)
        if pile == len(tops):
            tops.append(index)
            piles.append(number)
        else:
            tops[pile] = index
            piles[pile] = number
        back.append(piles[pile - 1] if pile else -1)
    chain: list[tuple[int, int]] = []
    at = piles[-1] if piles else -1
    while at >= 0:
        chain.append(pairs[at])
        at = back[at]
    return chain[::-1]


def _exact(old: Sequence[str], new: Sequence[str], gap: Change) -> Iterator[Change]:
    # Most diffs of small edits need no more than the trimming above.
    a1, a2, b1, b2 = gap
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old[a1:a2], new[b1:b2], autojunk=False).get_opcodes():
        if tag != "equal":
            yield a1 + i1, a1 + i2, b1 + j1, b1 + j2


def _body(before: list[str], after: list[str]) -> Iterator[str]:
    # A text that ends with a newline splits into one empty string more than it has lines.
    ends = (before[-1] == "", after[-1] == "")
    old = before[:-1] if ends[0] else [*before[:-1], before[-1] + "\n" + _NO_NEWLINE]
    new = after[:-1] if ends[1] else [*after[:-1], after[-1] + "\n" + _NO_NEWLINE]
    for group in _grouped(changes(old, new)):
        first_a, first_b = group[0][0], group[0][2]
        lead = min(_CONTEXT, first_a)
        last_a, last_b = group[-1][1], group[-1][3]
        tail = min(_CONTEXT, len(old) - last_a)
        start_a, start_b = first_a - lead, first_b - lead
        yield f"@@ -{_range(start_a, last_a + tail)} +{_range(start_b, last_b + tail)} @@"
        at = start_a
        for a1, a2, b1, b2 in group:
            yield from (" " + line for line in old[at:a1])
            yield from ("-" + line for line in old[a1:a2])
            yield from ("+" + line for line in new[b1:b2])
            at = a2
        yield from (" " + line for line in old[at : last_a + tail])


def _grouped(found: Sequence[Change]) -> Iterator[list[Change]]:
    group: list[Change] = []
    for change in found:
        if group and change[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _range(start: int, end: int) -> str:
    size = end - start
    if size == 1:
        return str(start + 1)
    return f"{start + 1 if size else start},{size}"

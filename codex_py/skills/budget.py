"""Fitting the list of skills into its budget: which lines are in, and how much of each description.

Pure arithmetic on lines of text. The scheme and its rounding are those of Codex CLI 0.169: first everything, else a
fair share of the descriptions, else names alone, as many as fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.value import Value
from codex_py.text.tokens import estimate_tokens

Unit: TypeAlias = Literal["tokens", "characters"]

_DEFAULT_CHARACTERS: Final = 8000
_PERCENT_OF_WINDOW: Final = 2
# Characters of its description that a favoured line keeps.
_FAVOURED: Final = 300
# A block of the context has 256 KiB; the rest of it is for the table of roots and the rules below the list.
MAX_TOKENS: Final = 60_000


class Budget(Value):
    """How much the list may take."""

    limit: int
    unit: Unit

    def cost(self, text: str) -> int:
        """The cost of a text; lines are rounded up one by one."""
        return estimate_tokens(_size(text)) if self.unit == "tokens" else len(text)


class BudgetLine(NamedTuple):
    """One skill of the list before fitting."""

    name: str
    description: str
    location: str

    def text(self, shown: int | None = None) -> str:
        """The line with the first `shown` characters of its description, all of them by default."""
        description = self.description if shown is None else self.description[:shown]
        return (
            f"- {self.name}: {description} (file: {self.location})"
            if description
            else f"- {self.name}: (file: {self.location})"
        )


class Fit(Value):
    """For each line the characters of its description that are shown, or None for a line that is left out."""

    shown: tuple[int | None, ...]
    cost: int


def budget_for(context_window: int | None, max_tokens: int | None) -> Budget:
    """`max_tokens` where it is set, else 2 % of the context window, else 8,000 characters; at most `MAX_TOKENS`."""
    if max_tokens is not None and max_tokens > 0:
        return Budget(min(max_tokens, MAX_TOKENS), "tokens")
    if context_window is not None and context_window > 0:
        return Budget(min(max(1, context_window * _PERCENT_OF_WINDOW // 100), MAX_TOKENS), "tokens")
    return Budget(_DEFAULT_CHARACTERS, "characters")


def tokens_for(context_window: int | None, max_tokens: int | None, share: str | None) -> int | None:
    """The tokens that the user's settings allow: a share such as `5%` of a known window, else `max_tokens`."""
    return context_window * int(share[:-1]) // 100 if share and context_window else max_tokens


class Preference(Value):
    """The places of all lines, those to be kept before others first; the first `favoured` keep a description too."""

    order: tuple[int, ...]
    favoured: int


def fits_whole(lines: Sequence[BudgetLine], budget: Budget) -> bool:
    """Whether all lines fit as they are."""
    # A token is four bytes, so that more characters than these fit in neither unit.
    if sum(len(line.description) for line in lines) > 4 * budget.limit:
        return False
    return _full_cost(lines, budget) <= budget.limit


def fit_lines(lines: Sequence[BudgetLine], budget: Budget, preference: Preference | None = None) -> Fit:
    """Everything when it fits; else each line with a share of its description; else lines without, as many as fit.

    With a preference the favoured lines keep up to 300 characters of their description before the rest is shared, in
    at most half of what there is beyond the names, or in a third of it all where not even these fit.
    """
    if fits_whole(lines, budget):
        return Fit(tuple(len(line.description) for line in lines), _full_cost(lines, budget))
    bare = [budget.cost(f"{line.text(0)}\n") for line in lines]
    minimum = sum(bare)
    if minimum <= budget.limit:
        growing = [_Growing(line, budget) for line in lines]
        left = budget.limit - minimum
        chosen = list(_favour(growing, left // 2, preference)) if preference else []
        spent = sum(growing[at].spent for at in chosen)
        spent += _share([entry for at, entry in enumerate(growing) if at not in chosen], left - spent)
        for entry in (growing[at] for at in chosen):
            available = left - spent + entry.spent
            spent -= entry.spent
            entry.grow(
                _last_true(lambda count, entry=entry, available=available: entry.cost(count) <= available, entry.length)
            )
            spent += entry.spent
        return Fit(tuple(entry.shown for entry in growing), minimum + spent)
    shown: list[int | None] = [None] * len(lines)
    used = 0
    if preference:
        for at in preference.order[: preference.favoured]:
            length = min(_FAVOURED, len(lines[at].description))
            cost = budget.cost(f"{lines[at].text(length)}\n")
            if used + cost <= budget.limit // 3:
                shown[at] = length
                used += cost
    for at in preference.order if preference else range(len(lines)):
        if shown[at] is None and used + bare[at] <= budget.limit:
            shown[at] = 0
            used += bare[at]
    return Fit(tuple(shown), used)


def _full_cost(lines: Sequence[BudgetLine], budget: Budget) -> int:
    return sum(budget.cost(f"{line.text()}\n") for line in lines)


def _favour(lines: Sequence[_Growing], budget: int, preference: Preference) -> Iterator[int]:
    """Give the favoured lines their descriptions, as far as they fit; the places of those that got one."""
    for at in preference.order[: preference.favoured]:
        lines[at].grow(_FAVOURED)
        if lines[at].spent <= budget:
            budget -= lines[at].spent
            yield at
        else:
            lines[at].grow(0)


class _Growing:
    """A line whose description gets longer; costs are what it takes beyond the line without description."""

    __slots__ = ("_bare", "_bare_tokens", "_description", "_is_ascii", "_unit", "length", "shown", "spent")

    def __init__(self, line: BudgetLine, budget: Budget) -> None:
        self._description = line.description
        self._is_ascii = line.description.isascii()
        self._unit = budget.unit
        self._bare = _size(line.text(0)) + 1
        self._bare_tokens = estimate_tokens(self._bare)
        self.length = len(line.description)
        self.shown = 0
        self.spent = 0

    def cost(self, count: int) -> int:
        """The price of the first `count` characters and the space behind them."""
        if not count:
            return 0
        if self._unit == "characters":
            return count + 1
        size = count if self._is_ascii else _size(self._description[:count])
        return estimate_tokens(self._bare + size + 1) - self._bare_tokens

    def grow(self, count: int) -> None:
        self.shown = min(count, self.length)
        self.spent = self.cost(self.shown)


def _share(lines: Sequence[_Growing], budget: int) -> int:
    """Give out the room one character a line and round, in order; the price that was paid.

    All rounds that fit whole are found at once, because a list may have two thousand lines; what is left then is
    less than one more round takes.
    """
    rounds = _last_true(
        lambda count: sum(line.cost(min(count, line.length)) for line in lines) <= budget,
        max((line.length for line in lines), default=0),
    )
    for line in lines:
        line.grow(rounds)
    left = budget - sum(line.spent for line in lines)
    hungry = [line for line in lines if line.shown < line.length]
    while hungry:
        grown: list[_Growing] = []
        for line in hungry:
            price = line.cost(line.shown + 1) - line.spent
            if price <= left:
                left -= price
                line.grow(line.shown + 1)
                grown.append(line)
        if not grown:
            break
        hungry = [line for line in hungry if line.shown < line.length]
    return budget - left


def _last_true(holds: Callable[[int], bool], top: int) -> int:
    """The greatest number from 0 to `top` for which something holds that holds for 0 and stops holding once."""
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        if holds(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))

"""Token counts as the provider reports them, and the terms for wires and for compacting a history."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value


class TokenUsage(Value):
    """Tokens of one response, or the sum over several.

    Cached tokens, and those written to the cache, are part of the input tokens.
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0
    cache_write_input_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_output_tokens + other.reasoning_output_tokens,
            self.total_tokens + other.total_tokens,
            self.cache_write_input_tokens + other.cache_write_input_tokens,
        )

    @property
    def uncached_total(self) -> int:
        """What was paid for in full: all tokens but the cached ones."""
        return max(0, self.total_tokens - self.cached_input_tokens)

    @property
    def cached_share(self) -> float:
        """How much of the input came out of the provider's cache, from 0 to 1."""
        return min(1.0, self.cached_input_tokens / self.input_tokens) if self.input_tokens else 0.0

    def in_words(self) -> str:
        """For a person: `1,200 tokens in (83% cached), 80 out`; what was written to the cache where that is counted."""
        written = f", {self.cache_write_input_tokens:,} written" if self.cache_write_input_tokens else ""
        return f"{self.input_tokens:,} tokens in ({self.cached_share:.0%} cached{written}), {self.output_tokens:,} out"

    @classmethod
    def from_wire(cls, usage: object) -> TokenUsage:
        """Read a Responses `usage` object; missing or odd fields count as 0."""
        counts = as_object(usage)
        sent, received = _count(counts, "input_tokens"), _count(counts, "output_tokens")
        return cls(
            sent,
            _count(counts.get("input_tokens_details"), "cached_tokens"),
            received,
            _count(counts.get("output_tokens_details"), "reasoning_tokens"),
            _count(counts, "total_tokens") or sent + received,
            _count(counts.get("input_tokens_details"), "cache_write_tokens"),
        )


# The code of a failure that says that a budget is used up.
BUDGET_REACHED: Final = "budget_reached"


class Spending(Value):
    """The cost of requests. `usd` is US dollars, of those whose price is known; `unpriced` counts the others.

    Tokens are those of input and output together.
    """

    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    unpriced: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.requests + other.requests,
            self.tokens + other.tokens,
            # A sum of prices has few digits; those of floating point are no part of it.
            round(self.usd + other.usd, 12),
            self.unpriced + other.unpriced,
        )

    @property
    def known_usd(self) -> float | None:
        """The dollars; None where the price of any request is unknown."""
        return None if self.unpriced else self.usd

    def in_words(self) -> str:
        """For a person: `$0.0123`; `?` where no price is known, `$0.0123 + ?` where some are not."""
        if not self.unpriced:
            return describe_usd(self.usd)
        return f"{describe_usd(self.usd)} + ?" if self.unpriced < self.requests else "?"

    @classmethod
    def from_record(cls, record: object) -> Spending:
        """Read `to_record` back; what is missing or odd counts as 0."""
        fields = as_object(record)
        amount: object = fields.get("usd")
        is_amount = isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount < 1e12
        usd = float(amount) if isinstance(amount, int | float) and is_amount else 0.0
        return cls(_count(fields, "requests"), _count(fields, "tokens"), usd, _count(fields, "unpriced"))

    def to_record(self) -> dict[str, float]:
        """As it stands in a session file; what is 0 is left out."""
        return {name: value for name, value in self.__dict__.items() if value}


class RequestCost(Value):
    """What one answered request took: of which model, for a `turn` or a `compaction`, and what it cost."""

    provider: str
    model: str
    kind: str
    usage: TokenUsage
    spending: Spending


class Costs(Value):
    """What was spent so far: in this turn and in the session, agents included, and by agents alone."""

    turn: Spending = Spending()
    session: Spending = Spending()
    agents: Spending = Spending()


def describe_usd(usd: float) -> str:
    """An amount in US dollars: whole cents from a dollar on, below that so that two digits show."""
    if usd >= 1 or usd <= 0:
        return f"${usd:,.2f}"
    return f"${usd:.4f}" if usd >= 0.0001 else f"${usd:.6f}"


def context_share(last: TokenUsage, window: int | None) -> float | None:
    """How much of the model's window the last response left filled, from 0 to 1; None when the window is unknown."""
    return min(1.0, last.total_tokens / window) if window else None


def _count(fields: object, key: str) -> int:
    value = as_object(fields).get(key)
    return value if isinstance(value, int) and value > 0 else 0


# The API a provider speaks; `codex_py.model.wires` has a module for each.
WireApi: TypeAlias = Literal["responses", "chat", "messages"]
# The model writes a summary; the provider's endpoint replaces the history; the provider answers with an item for it.
CompactionWay: TypeAlias = Literal["local", "remote", "in-band"]
# Asked for by the user; the limit is reached; a request did not fit; the next model reads less.
CompactionReason: TypeAlias = Literal["user_requested", "context_limit", "context_overflow", "smaller_window"]


class BudgetLimits(Value):
    """Upper limits on spending; None for no limit."""

    usd: float | None = None
    tokens: int | None = None
    requests: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        return self != BudgetLimits()

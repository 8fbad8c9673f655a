"""Token counts as the provider reports them."""

from __future__ import annotations

from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value


class TokenUsage(Value):
    """Tokens of one response, or the sum over several. Cached tokens are part of the input tokens."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0
    total_tokens: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_output_tokens + other.reasoning_output_tokens,
            self.total_tokens + other.total_tokens,
        )

    @property
    def uncached_total(self) -> int:
        """What was paid for in full: all tokens but the cached ones."""
        return max(0, self.total_tokens - self.cached_input_tokens)

    @classmethod
    def from_wire(cls, usage: object) -> TokenUsage:
        """Read a Responses `usage` object; missing or odd fields count as 0."""
        counts = as_object(usage)
        given, taken = _count(counts, "input_tokens"), _count(counts, "output_tokens")
        return cls(
            given,
            _count(counts.get("input_tokens_details"), "cached_tokens"),
            taken,
            _count(counts.get("output_tokens_details"), "reasoning_tokens"),
            _count(counts, "total_tokens") or given + taken,
        )


def _count(fields: object, key: str) -> int:
    value = as_object(fields).get(key)
    return value if isinstance(value, int) and value > 0 else 0

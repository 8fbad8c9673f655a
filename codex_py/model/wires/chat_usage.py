"""The token counts of a Chat Completions answer, which servers give under several names."""

from __future__ import annotations

from typing import Any, Final

from codex_py.protocol.encoding import as_object
from codex_py.protocol.usage import TokenUsage

_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens")


def read_usage(usage: dict[str, Any]) -> TokenUsage:
    """The counts of a `usage` object; missing or odd ones are 0. Cached tokens are part of the input."""
    prompt, answer = _count(usage, "prompt_tokens", "input_tokens"), _count(usage, "completion_tokens", "output_tokens")
    details = as_object(usage.get("prompt_tokens_details"))
    cached = _count(details, *_CACHED) or _count(usage, *_CACHED)
    written = _count(details, *_WRITTEN) or _count(usage, *_WRITTEN)
    reasoning = _count(as_object(usage.get("completion_tokens_details")), "reasoning_tokens") or _count(
        usage, "reasoning_tokens"
    )
    if cached > prompt:
        # From a server that counts only what is new.
        prompt += cached
    total = _count(usage, "total_tokens")
    if reasoning and total == prompt + answer + reasoning:
        # From a server that counts the answer without its reasoning.
        answer += reasoning
    return TokenUsage(prompt, cached, answer, reasoning, max(total, prompt + answer), written)


def _count(fields: dict[str, Any], *names: str) -> int:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0

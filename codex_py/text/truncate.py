"""Cutting the middle out of a text that is longer than the model may be given."""

from __future__ import annotations

from codex_py.text.tokens import estimate_tokens

BYTES_PER_TOKEN = 4


def truncate_middle(text: str, limit: int, *, token_count: int | None = None) -> str:
    """`text` with its middle replaced by `…K tokens truncated…` when it is longer than `limit` tokens.

    Head and tail get half the budget each (4 bytes a token) and are cut between characters. `token_count` is the
    length to count the loss against when `text` itself has lost something before.
    """
    limit = max(limit, 0)
    raw = text.encode("utf-8", "replace")
    budget = limit * BYTES_PER_TOKEN
    if len(raw) <= budget:
        return text
    lost = (estimate_tokens(len(raw)) if token_count is None else token_count) - limit
    half = budget // 2
    return f"{_head(raw, half)}…{lost} tokens truncated…{_tail(raw, half)}"


def count_lines(text: str) -> int:
    """Lines in `text`; the last one counts with or without a newline at its end."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _head(raw: bytes, size: int) -> str:
    while size and size < len(raw) and raw[size] & 0xC0 == 0x80:
        size -= 1
    return raw[:size].decode()


def _tail(raw: bytes, size: int) -> str:
    start = len(raw) - size
    while start < len(raw) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:].decode()

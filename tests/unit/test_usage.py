"""Token counts: what a server reports, sums of it, and what of it a person is shown."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol.usage import TokenUsage, context_share

FULL = TokenUsage(100, 40, 10, 5, 110, 7)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (
            {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
                "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 5},
                "total_tokens": 110,
            },
            FULL,
        ),
        ({"input_tokens": 3, "output_tokens": 2}, TokenUsage(3, 0, 2, 0, 5)),
        ({"input_tokens": -3, "output_tokens": "2", "input_tokens_details": [], "total_tokens": None}, TokenUsage()),
        (None, TokenUsage()),
        ([1], TokenUsage()),
    ],
)
def test_usage_as_servers_send_it(wire: Any, expected: TokenUsage) -> None:
    assert TokenUsage.from_wire(wire) == expected


def test_a_sum_adds_every_count() -> None:
    doubled, same = FULL + FULL, FULL + TokenUsage()
    assert (doubled, same) == (TokenUsage(200, 80, 20, 10, 220, 14), FULL)


@pytest.mark.parametrize(
    ("usage", "share", "words"),
    [
        (TokenUsage(), 0.0, "0 tokens in (0% cached), 0 out"),
        (FULL, 0.4, "100 tokens in (40% cached, 7 written), 10 out"),
        (TokenUsage(1_234_567, 1_234_567, 8_900), 1.0, "1,234,567 tokens in (100% cached), 8,900 out"),
        # A server that counts oddly.
        (TokenUsage(10, 40, 1), 1.0, "10 tokens in (100% cached), 1 out"),
    ],
)
def test_the_share_that_came_from_the_cache(usage: TokenUsage, share: float, words: str) -> None:
    assert (usage.cached_share, usage.in_words()) == (share, words)


def test_how_full_the_window_is() -> None:
    assert context_share(TokenUsage(total_tokens=50), 200) == 0.25
    assert context_share(TokenUsage(total_tokens=500), 200) == 1.0
    assert context_share(FULL, None) is None

"""Cutting the middle out of long text."""

from __future__ import annotations

import pytest

from codex_py.text.tokens import count_lines, truncate_middle


def test_a_text_within_the_limit_stays_as_it_is() -> None:
    assert truncate_middle("abcdefgh", 2) == "abcdefgh"


def test_head_and_tail_share_the_budget_and_the_loss_is_counted() -> None:
    assert truncate_middle("a" * 50 + "b" * 50, 5) == "a" * 10 + "…20 tokens truncated…" + "b" * 10


def test_nothing_but_the_marker_is_left_of_a_budget_of_zero() -> None:
    assert truncate_middle("x" * 9, 0) == "…3 tokens truncated…"
    assert truncate_middle("x" * 9, -4) == "…3 tokens truncated…"


def test_characters_are_never_cut_in_two() -> None:
    assert truncate_middle("é" * 100, 5) == "é" * 5 + "…45 tokens truncated…" + "é" * 5
    assert truncate_middle("a" + "é" * 100 + "a", 5) == "aéééé" + "…46 tokens truncated…" + "éééé" + "a"
    assert truncate_middle("😀" * 40, 3) == "😀…37 tokens truncated…😀"


def test_the_loss_counts_what_was_dropped_before() -> None:
    assert truncate_middle("x" * 80, 10, token_count=1000) == "x" * 20 + "…990 tokens truncated…" + "x" * 20


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)])
def test_the_last_line_counts_with_or_without_its_newline(text: str, lines: int) -> None:
    assert count_lines(text) == lines

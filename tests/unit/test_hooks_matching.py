"""Matchers, as hooks for other tools are written with them."""

from __future__ import annotations

import pytest

from codex_py.hooks.matching import Matcher, trouble_with

NAMES = ["Bash", "Edit", "MultiEdit", "Write", "apply_patch", "mcp__memory__save", "mcp__files__read"]


@pytest.mark.parametrize(
    ("matcher", "fits"),
    [
        ("", NAMES),
        ("*", NAMES),
        (".*", NAMES),
        ("Bash", ["Bash"]),
        ("Ba", []),
        ("bash", []),
        ("Edit|Write", ["Edit", "Write"]),
        ("Edit | Write", ["Edit", "Write"]),
        ("Edit, Write", ["Edit", "Write"]),
        ("^Ba", ["Bash"]),
        ("B.s", ["Bash"]),
        ("(Multi)?Edit", ["Edit", "MultiEdit"]),
        ("mcp__.*", ["mcp__memory__save", "mcp__files__read"]),
        ("mcp__memory__.*", ["mcp__memory__save"]),
        ("mcp__memory", []),
        ("^(?!mcp__).*h$", ["Bash", "apply_patch"]),
        ("Edit|Write|mcp__.*save$", ["Edit", "MultiEdit", "Write", "mcp__memory__save"]),
    ],
)
def test_a_matcher_is_for_words_or_for_what_its_expression_finds(matcher: str, fits: list[str]) -> None:
    assert trouble_with(matcher) is None
    assert [name for name in NAMES if Matcher(matcher).fits(name)] == fits


@pytest.mark.parametrize(
    "matcher",
    ["(", "[a", "*a", "(?P<x", "a" * 2000, "(a+)+", "(a|a)*$", "(a?a?)*x", ".*.*.*.*x", r"(a)\1", "((a{2,9})b){3,}"],
)
def test_what_is_no_expression_or_could_take_for_ever_is_refused(matcher: str) -> None:
    assert trouble_with(matcher)


@pytest.mark.parametrize("matcher", ["(?:a|b)c", "[*+]+", r"\(a\)+", "a.*b|c.*d|e.*f|g.*h", "(a+)?b", "x{2}y{3}"])
def test_plain_expressions_are_taken(matcher: str) -> None:
    assert trouble_with(matcher) is None


def test_the_slowest_expression_that_is_taken_ends_for_the_longest_name() -> None:
    assert not Matcher("a*a*a*b").fits("a" * 100_000)

"""Matchers, as hooks for other tools are written with them."""

from __future__ import annotations

import pytest

from codex_py.hooks.matching import Condition, Matcher, find_matcher_error

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
    assert find_matcher_error(matcher) is None
    assert [name for name in NAMES if Matcher(matcher).fits(name)] == fits


@pytest.mark.parametrize(
    "matcher",
    ["(", "[a", "*a", "(?P<x", "a" * 2000, "(a+)+", "(a|a)*$", "(a?a?)*x", ".*.*.*.*x", r"(a)\1", "((a{2,9})b){3,}"],
)
def test_what_is_no_expression_or_could_take_for_ever_is_refused(matcher: str) -> None:
    assert find_matcher_error(matcher)


@pytest.mark.parametrize("matcher", ["(?:a|b)c", "[*+]+", r"\(a\)+", "a.*b|c.*d|e.*f|g.*h", "(a+)?b", "x{2}y{3}"])
def test_plain_expressions_are_taken(matcher: str) -> None:
    assert find_matcher_error(matcher) is None


@pytest.mark.parametrize(
    ("condition", "command", "holds"),
    [
        ("", "ls", True),
        ("Bash", "ls", True),
        ("Edit", "ls", False),
        ("Bash(*)", "ls", True),
        ("Bash(git push*)", "git push origin", True),
        ("Bash(git push*)", "cd x && A=1 git push", True),
        ("Bash(git push*)", "git status", False),
        ("Bash(git push*)", "if true; then git  push; fi", True),
        ("Bash(git push*)", "! timeout -k 1 5s git push", True),
        ("Bash(git push*)", "sudo -u me git push", True),
        ("Bash(git push*)", "env A='x y' B=1 nohup git push", True),
        ("Bash(git push*)", "echo git push", False),
        ("Bash(git push*)", 'A="x ' * 10_000, False),
        ("Bash(git push*)", "sudo -u " * 8_000, False),
        ("Bash(git push*)", "git A=1 push", False),
        ("Bash(git push*)", "a" * 60_000, False),
        ("Bash(git push*)", "a" * 100_000, True),
        ("Bash(git *)", "git", True),
        ("Bash(git:*)", "git log", True),
        ("Bash(git:*)", "gitk", False),
        ("Bash(npm run [a]?)", "npm run [a]?", True),
        ("Edit(git *)", "git log", False),
        ("Bash(" + "*a" * 50 + ")", "a" * 40 + "b", False),
    ],
)
def test_a_condition_is_for_a_command_or_a_part_of_it(condition: str, command: str, holds: bool) -> None:
    assert Condition(condition).holds(("Bash", "exec_command"), {"command": command}) is holds


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("Edit(*.py)", True),
        ("Write(*.md)", False),
        ("Edit(src/**)", True),
        ("Edit(./src/a.py)", True),
        ("mcp__x", False),
        ("E*", True),
    ],
)
def test_a_condition_is_for_a_file(condition: str, holds: bool) -> None:
    value = {"file_path": "/repo/b.txt", "file_paths": ["/repo/src/a.py"], "command": "*** Begin Patch"}
    assert Condition(condition).holds(("apply_patch", "Edit", "Write"), value) is holds


def test_a_condition_about_something_else_holds() -> None:
    assert Condition("Task(reviewer)").holds(("spawn_agent", "Task"), {"prompt": "look"})


def test_the_slowest_expression_that_is_taken_ends_for_the_longest_name() -> None:
    assert not Matcher("a*a*a*b").fits("a" * 100_000)

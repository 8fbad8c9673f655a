"""Hooks as they are written: both forms, and what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.hooks.schema import Hook, HookOrigin, Matcher, disabled_hooks, hook_tables, parse_hooks

ORIGIN = HookOrigin("user", Path("/home/hooks.json"))


def hook(event: str, command: str | tuple[str, ...], matcher: str = "", timeout: float = 600.0) -> Hook:
    return Hook(event, Matcher(matcher), command, timeout, ORIGIN)


def test_both_forms_mean_the_same() -> None:
    nested = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a", "timeout": 5}]}]}
    flat = {"PreToolUse": [{"matcher": "Bash", "command": "a", "timeout": 5}]}
    assert parse_hooks(nested, ORIGIN).hooks == (hook("PreToolUse", "a", "Bash", 5.0),)
    assert parse_hooks(flat, ORIGIN) == parse_hooks(nested, ORIGIN)
    assert parse_hooks({"PreToolUse": flat["PreToolUse"][0]}, ORIGIN) == parse_hooks(flat, ORIGIN)


def test_the_order_is_the_one_they_are_written_in() -> None:
    tables = {
        "Stop": [
            {"hooks": [{"command": "a"}, {"command": "b", "args": ["c d"]}, {"command": ["b", "c d"]}]},
            {"command": "e"},
        ],
        "PreToolUse": [{"matcher": None, "hooks": [{"type": "command", "command": "f"}]}],
    }
    assert parse_hooks(tables, ORIGIN).hooks == (
        hook("Stop", "a"),
        hook("Stop", ("b", "c d")),
        hook("Stop", ("b", "c d")),
        hook("Stop", "e"),
        hook("PreToolUse", "f"),
    )


def test_a_file_has_its_tables_below_hooks_or_at_its_top() -> None:
    tables = {"Stop": [{"command": "a"}]}
    assert hook_tables({"description": "mine", "hooks": tables}) == tables
    assert hook_tables(tables) == tables
    assert hook_tables([1]) == {}
    assert hook_tables({"disableAllHooks": True, "hooks": tables}) == {}


def test_a_file_whose_hooks_are_no_table_is_reported() -> None:
    tables = hook_tables({"version": 1, "hooks": [{"event": "Stop", "command": "a"}]})
    assert parse_hooks(tables, ORIGIN) == (
        (),
        ("`hooks` in `/home/hooks.json` is ignored: it is not a table with a list for each event",),
        "",
    )
    assert hook_tables({"hooks": []}) == hook_tables({"hooks": None}) == {}


def test_what_other_programs_keep_there_is_passed_over() -> None:
    tables = {"state": {"/x:stop:0:0": {"trusted_hash": "sha256:1"}}, "description": "my hooks"}
    assert parse_hooks(tables, ORIGIN) == ((), (), "")


def test_what_codex_cli_has_switched_off_stays_off() -> None:
    state = {
        "/home/hooks.json:user_prompt_submit:1:0": {"enabled": False},
        "/home/hooks.json:user_prompt_submit:0:0": {"enabled": True, "trusted_hash": "sha256:1"},
        "/home/hooks.json:user_prompt_submit:0:1": {"enabled": False},
        "/elsewhere/hooks.json:user_prompt_submit:0:0": {"enabled": False},
    }
    entries = [{"hooks": [{"command": "a"}, {"command": "b"}]}, {"command": "c"}, {"command": "d"}]
    read = parse_hooks({"UserPromptSubmit": entries}, ORIGIN, frozenset(disabled_hooks({"state": state})))
    assert read.hooks == (hook("UserPromptSubmit", "a"), hook("UserPromptSubmit", "d"))


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (5, "it is not a table"),
        ({"hooks": [{"type": "speech", "command": "a"}]}, "hooks of the type `speech` are not supported"),
        ({}, "it has no `command`"),
        ({"command": ""}, "it has no `command`"),
        ({"command": "a\0b"}, "it has no `command`"),
        ({"command": [1]}, "it has no `command`"),
        ({"command": "x" * 20_000}, "its command is longer than 16 KiB"),
        ({"command": "a", "if": "Bash(git push*)"}, "its `if` is a rule for tool calls"),
        ({"hooks": "a"}, "its `hooks` is not a list"),
        ({"command": "a", "matcher": 5}, "its `matcher` is not a text"),
        ({"command": "a", "matcher": "("}, "its matcher `(` is wrong"),
    ],
)
def test_what_is_no_hook_is_reported_with_its_place(entry: Any, reason: str) -> None:
    read = parse_hooks({"Stop": [{"command": "fine"}, entry]}, ORIGIN)
    assert read.hooks == (hook("Stop", "fine"),)
    [warning] = read.warnings
    assert warning.startswith(f"hook 2 of `Stop` in `/home/hooks.json` is ignored: {reason}")


@pytest.mark.parametrize("timeout", ["10", 0, True, float("nan")])
def test_a_time_that_is_none_does_not_cost_the_hook(timeout: Any) -> None:
    read = parse_hooks({"Stop": [{"command": "a", "timeout": timeout}]}, ORIGIN)
    assert read.hooks == (hook("Stop", "a"),)
    [warning] = read.warnings
    assert warning.endswith("has a `timeout` that is not a number of seconds above 0: 600 is used")


def test_what_is_no_list_is_reported() -> None:
    assert parse_hooks({"Stop": 5}, ORIGIN) == (
        (),
        ("hooks for `Stop` in `/home/hooks.json` are ignored: they are not a list of tables",),
        "",
    )


def test_an_unknown_event_is_reported_with_the_one_it_is_near_to() -> None:
    read = parse_hooks({"pre_tool_use": [{"command": "a"}]}, ORIGIN)
    assert read.warnings == (
        "hooks for `pre_tool_use` in `/home/hooks.json` are ignored: there is no such event;"
        " did you mean `PreToolUse`?",
    )


def test_a_flood_of_hooks_is_cut() -> None:
    read = parse_hooks({"Stop": [{"command": "a"}] * 10_000}, ORIGIN)
    assert len(read.hooks) == 500
    assert read.warnings == ("only the first 500 of 10000 hooks in `/home/hooks.json` are used",)


@pytest.mark.parametrize(
    ("event", "entry", "word", "near"),
    [
        ("PreToolUse", {"matcher": "Edti", "command": "a"}, "Edti", "Edit"),
        ("PostToolUse", {"matcher": "Bash|Wirte", "hooks": [{"command": "a"}]}, "Wirte", "Write"),
        ("PreToolUse", {"matcher": "Bash", "hooks": [{"command": "a", "if": "Bsah(git *)"}]}, "Bsah", "Bash"),
        ("SessionStart", {"matcher": "strtup", "command": "a"}, "strtup", "startup"),
    ],
)
def test_a_misspelt_name_is_reported_and_the_hook_stays(
    event: str, entry: dict[str, Any], word: str, near: str
) -> None:
    parsed = parse_hooks({event: [entry]}, ORIGIN)
    kind = "tool" if event.endswith("Use") else "source"
    label = f"hook 1 of `{event}` in `/home/hooks.json`"
    assert parsed.warnings == (f"{label} is for `{word}`, and there is no such {kind}; did you mean `{near}`?",)
    assert len(parsed.hooks) == 1


@pytest.mark.parametrize(
    "matcher", ["", "*", "Bash", "Edit|Write", "mcp__docs__search", "mcp__.*", "MyOwnTool", "BashOutput"]
)
def test_other_names_are_left_alone(matcher: str) -> None:
    assert parse_hooks({"PreToolUse": [{"matcher": matcher, "command": "a"}]}, ORIGIN).warnings == ()

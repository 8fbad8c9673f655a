"""Hooks as they are written: both forms, and what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.hooks.schema import Hook, HookOrigin, Matcher, read_hooks, tables_of

ORIGIN = HookOrigin("user", Path("/home/hooks.json"))


def hook(event: str, command: str | tuple[str, ...], matcher: str = "", timeout: float = 600.0) -> Hook:
    return Hook(event, Matcher(matcher), command, timeout, ORIGIN)


def test_both_forms_mean_the_same() -> None:
    nested = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "a", "timeout": 5}]}]}
    flat = {"PreToolUse": [{"matcher": "Bash", "command": "a", "timeout": 5}]}
    assert read_hooks(nested, ORIGIN).hooks == (hook("PreToolUse", "a", "Bash", 5.0),)
    assert read_hooks(flat, ORIGIN) == read_hooks(nested, ORIGIN)
    assert read_hooks({"PreToolUse": flat["PreToolUse"][0]}, ORIGIN) == read_hooks(flat, ORIGIN)


def test_the_order_is_the_one_they_are_written_in() -> None:
    tables = {
        "Stop": [{"hooks": [{"command": "a"}, {"command": ["b", "c d"]}]}, {"command": "e"}],
        "PreToolUse": [{"matcher": None, "hooks": [{"type": "command", "command": "f"}]}],
    }
    assert read_hooks(tables, ORIGIN).hooks == (
        hook("Stop", "a"),
        hook("Stop", ("b", "c d")),
        hook("Stop", "e"),
        hook("PreToolUse", "f"),
    )


def test_a_file_has_its_tables_below_hooks_or_at_its_top() -> None:
    tables = {"Stop": [{"command": "a"}]}
    assert tables_of({"description": "mine", "hooks": tables}) == tables
    assert tables_of(tables) == tables
    assert tables_of([1]) == {}


def test_what_other_programs_keep_there_is_passed_over() -> None:
    tables = {"state": {"/x:stop:0:0": {"trusted_hash": "sha256:1"}}, "description": "my hooks"}
    assert read_hooks(tables, ORIGIN) == ((), ())


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (5, "it is not a table"),
        ({"hooks": [{"type": "prompt", "prompt": "is it safe?"}]}, "hooks of the type `prompt` are not supported"),
        ({}, "it has no `command`"),
        ({"command": ""}, "it has no `command`"),
        ({"command": "a\0b"}, "it has no `command`"),
        ({"command": [1]}, "it has no `command`"),
        ({"command": "x" * 20_000}, "its command is longer than 16 KiB"),
        ({"command": "a", "timeout": 0}, "its `timeout` is not a number of seconds above 0"),
        ({"command": "a", "timeout": True}, "its `timeout` is not a number of seconds above 0"),
        ({"command": "a", "timeout": float("nan")}, "its `timeout` is not a number of seconds above 0"),
        ({"command": "a", "matcher": 5}, "its `matcher` is not a text"),
        ({"command": "a", "matcher": "("}, "its matcher `(` is of no use"),
    ],
)
def test_what_is_no_hook_is_told_with_its_place(entry: Any, reason: str) -> None:
    read = read_hooks({"Stop": [{"command": "fine"}, entry]}, ORIGIN)
    assert read.hooks == (hook("Stop", "fine"),)
    [warning] = read.warnings
    assert warning.startswith(f"hook 2 of `Stop` in `/home/hooks.json` is ignored: {reason}")


def test_an_unknown_event_is_told_with_the_one_it_is_near_to() -> None:
    read = read_hooks({"pre_tool_use": [{"command": "a"}]}, ORIGIN)
    assert read.warnings == (
        "hooks for `pre_tool_use` in `/home/hooks.json` are ignored: did you mean `PreToolUse`? there is no such event",
    )


def test_a_flood_of_hooks_is_cut() -> None:
    read = read_hooks({"Stop": [{"command": "a"}] * 10_000}, ORIGIN)
    assert len(read.hooks) == 500
    assert read.warnings == ("only the first 500 of 10000 hooks in `/home/hooks.json` are used",)

"""Every verdict of the table in `verdicts.txt`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from codex_py.shell.dangerous import Reach, find_danger
from codex_py.shell.known_safe import is_known_safe
from codex_py.shell.reading import read_command_line

HOME = "/home/me"
REACH = Reach(("/work", "/tmp"), HOME, lambda path: path.startswith(("/work", "/tmp")))
TABLE = Path(__file__).with_name("verdicts.txt")


def verdict_of(script: str) -> str:
    line = read_command_line(script, "/work", {"HOME": HOME})
    if find_danger(line, REACH):
        return "dangerous"
    return "safe" if line.segments and all(map(is_known_safe, line.segments)) else "unknown"


def sections() -> Iterator[tuple[str, list[str]]]:
    for block in TABLE.read_text().split("\n[")[1:]:
        heading, *lines = block.strip().splitlines()
        yield heading.rstrip("]"), [json.loads(line) for line in lines if line]


@pytest.mark.parametrize(("heading", "scripts"), list(sections()))
def test_verdicts_are_those_of_the_table(heading: str, scripts: list[str]) -> None:
    assert {script: verdict_of(script) for script in scripts} == dict.fromkeys(scripts, heading)


def test_the_table_has_hundreds_of_commands() -> None:
    scripts = [script for _, found in sections() for script in found]
    assert len(scripts) == len(set(scripts)) > 1500

"""What the help of a command says to somebody who has not met it."""

from __future__ import annotations

import pytest

from tests.support.home import Place
from tests.support.process import run


@pytest.mark.parametrize("group", ["hooks", "mcp", "plugin", "sessions", "skills"])
def test_each_command_of_a_group_is_reported_in_a_whole_sentence(place: Place, group: str) -> None:
    ended = run(place, group, "--help")
    commands = ended.out.partition("\nCommands:\n")[2]
    # A new command begins where a line is indented by two.
    result = commands.replace("\n  ", "\n\n  ").replace("\n\n    ", " ").strip().split("\n\n")
    assert ended.status == 0
    assert len(result) > 2
    assert [one for one in result if not one.endswith(".") or one.endswith("...")] == []


@pytest.mark.parametrize("arguments", [("--demo",), ("--offline", "--demo")])
def test_the_removed_demo_names_other_ways_to_see_a_session(place: Place, arguments: tuple[str, ...]) -> None:
    ended = run(place, *arguments)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "error: `--demo` was removed; the README has a picture of a session; "
        "`codex-py --offline` starts one without a key\n"
    )

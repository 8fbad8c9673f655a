"""The examples of the guide to hooks do what the guide says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import run

GUIDE = (Path(__file__).parents[2] / "docs/guides/hooks.md").read_text()


def example(language: str) -> str:
    """The first example of a language."""
    found = re.search(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def output_of(place: Place, cmd: str, form: str) -> str:
    """What the model reads of a command where the guard of the guide stands."""
    with FakeResponses([call("c1", "exec_command", {"cmd": cmd, "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"\n')
        if form == "json":
            (place.codex_home / "hooks.json").write_text(example("json"))
        else:
            config = place.codex_home / "config.toml"
            config.write_text(config.read_text() + example("toml"))
        ended = run(place, "exec", "go")
    assert ended.status == 0, ended.err
    return model.requests[1].output_of("c1")


@pytest.fixture
def guarded(place: Place) -> Place:
    script = place.home / "hooks/no-push.py"
    script.parent.mkdir()
    script.write_text(example("python"))
    script.chmod(0o755)
    return place


@pytest.mark.parametrize("form", ["json", "toml"])
@pytest.mark.parametrize(
    "cmd",
    ["git push", "git -C elsewhere push", "true && git  \\\n push -f", "bash -c 'git \"push\"'", "git --no-pager push"],
)
def test_the_guard_of_the_guide_stops_a_push(guarded: Place, form: str, cmd: str) -> None:
    assert output_of(guarded, cmd, form) == "blocked by a PreToolUse hook: pushing is mine to do"


def test_it_lets_everything_else_through(guarded: Place) -> None:
    assert "Process exited with code 0" in output_of(guarded, "git status && echo push", "json")


@pytest.mark.parametrize("broken", ["gone", "crashes", "no interpreter", "not executable"])
def test_it_holds_where_it_cannot_run(guarded: Place, broken: str) -> None:
    script = guarded.home / "hooks/no-push.py"
    match broken:
        case "gone":
            script.unlink()
        case "crashes":
            script.write_text("#!/usr/bin/env python3\nimport jq\n")
        case "no interpreter":
            script.write_text("#!/usr/bin/env no-such-python\n")
        case _:
            script.chmod(0o644)
    output = output_of(guarded, "git push", "json")
    assert output.startswith(
        "blocked by a PreToolUse hook: a hook that must not fail (`fail_closed`) failed with exit code"
    )

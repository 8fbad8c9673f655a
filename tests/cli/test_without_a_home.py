"""A user whom the system does not know, without `HOME`: as in a container with a number for a user."""

from __future__ import annotations

import os

import pytest

from codex_py.programs import ProbeResults
from codex_py.sandbox.linux import find_bwrap
from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Finished, Running


def run_unknown(place: Place, *arguments: str) -> Finished:
    """Run `codex-py` as a user of whom there is only the number; it may do what we may."""
    bwrap, reason = find_bwrap(os.environ, (), ProbeResults())
    assert bwrap is not None, reason
    argv = [bwrap, "--dev-bind", "/", "/", "--unshare-user", "--uid", "54321", COMMAND, *arguments]
    env = {name: value for name, value in place.env.items() if name not in ("HOME", "USER")}
    with Running(argv, env=env, cwd=place.repo) as running:
        ended = running.wait()
    assert not ended.has_traceback, ended.err
    return ended


def test_exec_runs_a_command_without_a_home(place: Place) -> None:
    with fake_model(place, [call("c1", "exec_command", {"cmd": "id -u; ls"})], [say("done")]) as model:
        ended = run_unknown(place, "exec", "hi")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "54321" in model.requests[1].output_of("c1")
    assert "README.md" in model.requests[1].output_of("c1")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(["skills", "list"], 0), (["skills", "list", "-C", "~/x"], 2), (["skills", "lint", "~/x"], 2), (["config"], 0)],
)
def test_commands_answer_without_a_home(place: Place, arguments: list[str], status: int) -> None:
    assert run_unknown(place, *arguments).status == status

"""Machines that forbid user namespaces, as most containers do: nothing runs, it is said once, and the status is 1."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support import no_namespaces
from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Finished, Running

FORBIDS = "this machine forbids user namespaces, which it needs"
ALLOW = "allow user namespaces (see docs/guides/containers.md)"
LAST = "or use `-s danger-full-access` in a throw-away container"
ACCEPT = "accept the incomplete sandbox with `-c sandbox.allow_partial=true`"
MESSAGES = {
    "partial": f"the sandbox is incomplete and no command runs: {FORBIDS}; {ALLOW}, {ACCEPT}, {LAST}",
    "missing": f"the sandbox is missing and no command runs: {FORBIDS}, and has no Landlock; {ALLOW} {LAST}",
}
REFUSED = (
    "refused: no command can run on this machine, because its sandbox is missing or incomplete; do not try other "
    "commands, report it"
)


@pytest.fixture(params=MESSAGES)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def run_in_container(place: Place, kind: str, *arguments: str) -> Finished:
    """Run `codex-py` where user namespaces are forbidden, and Landlock too where the sandbox is `missing`."""
    options = ["--no-landlock"] if kind == "missing" else []
    argv = [sys.executable, no_namespaces.__file__, *options, COMMAND, *arguments]
    with Running(argv, env=place.env, cwd=place.repo) as running:
        return running.wait()


def test_a_run_in_which_no_command_could_run_has_failed_and_says_once_what_to_do(place: Place, kind: str) -> None:
    calls = [call(name, "exec_command", {"cmd": f"echo {name}", "login": False}) for name in ("c1", "c2")]
    with fake_model(place, [calls[0]], [calls[1]], [say("I could run nothing")]) as model:
        ended = run_in_container(place, kind, "exec", "go")

    assert (ended.status, ended.stdout) == (70, b"")
    assert [line for line in ended.err.splitlines() if "namespaces" in line] == [f"ERROR: {MESSAGES[kind]}"]
    assert [model.requests[-1].output_of(name) for name in ("c1", "c2")] == [REFUSED] * 2


def test_the_json_lines_end_with_the_failure(place: Place, kind: str) -> None:
    with fake_model(place, [call("c1", "exec_command", {"cmd": "ls"})], [say("no")]):
        ended = run_in_container(place, kind, "exec", "--json", "go")

    assert ended.status == 70
    assert ended.events[-1] == {"type": "turn.failed", "error": {"message": MESSAGES[kind], "code": "sandbox"}}
    [done] = [
        event["item"]
        for event in ended.events
        if event["type"] == "item.completed" and event["item"]["type"] == "command_execution"
    ]
    assert (done["status"], done["declined"], done["aggregated_output"]) == ("failed", True, REFUSED)


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("partial", ["-c", "sandbox.allow_partial=true"]),
        ("partial", ["-s", "danger-full-access"]),
        ("missing", ["-s", "danger-full-access"]),
    ],
)
def test_each_of_the_next_steps_runs_commands(place: Place, kind: str, flags: list[str]) -> None:
    with fake_model(place, [call("c1", "exec_command", {"cmd": "echo ran", "login": False})], [say("done")]) as model:
        ended = run_in_container(place, kind, "exec", *flags, "go")

    assert (ended.status, ended.out) == (0, "done\n"), ended.err
    assert model.requests[-1].output_of("c1").endswith("Output:\nran\n")


def test_a_turn_that_needs_no_command_is_not_concerned(place: Place, kind: str) -> None:
    with fake_model(place, [say("done")]):
        ended = run_in_container(place, kind, "exec", "go")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "sandbox is" not in ended.err


def test_a_command_that_a_rule_lets_run_counts_and_the_missing_sandbox_is_a_warning(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir()
    (rules / "own.rules").write_text('prefix_rule(pattern=["echo"], decision="allow")\n')
    calls = [call("c1", "exec_command", {"cmd": "echo ran"}), call("c2", "exec_command", {"cmd": "touch x"})]
    with fake_model(place, calls, [say("half done")]):
        ended = run_in_container(place, "partial", "exec", "go")

    assert (ended.status, ended.out) == (0, "half done\n"), ended.err
    assert [line for line in ended.err.splitlines() if "namespaces" in line] == [f"warning: {MESSAGES['partial']}"]


def test_the_doctor_fails_where_the_sandbox_does_not_work_and_names_the_next_step(place: Place, kind: str) -> None:
    ended = run_in_container(place, kind, "doctor")
    steps = {"partial": f"{ALLOW}, {ACCEPT}, {LAST}", "missing": f"{ALLOW} {LAST}"}
    assert ended.status == 1
    assert ended.out.splitlines()[-1] == f"next: {steps[kind]}"

    report = json.loads(run_in_container(place, kind, "doctor", "--json").out)
    assert report["next"] == steps[kind]
    assert [one["subject"] for one in report["findings"] if one["fine"] is False] == ["sandbox"]


def test_the_doctor_takes_a_partial_sandbox_that_the_user_accepts(place: Place) -> None:
    place.configure("[sandbox]\nallow_partial = true\n")
    ended = run_in_container(place, "partial", "doctor")
    assert ended.status == 0, ended.out
    assert "note   sandbox   landlock: in use, as `sandbox.allow_partial` accepts" in ended.out


def test_the_doctor_fails_for_a_login_that_cannot_be_used(place: Place, tmp_path: Path) -> None:
    (place.codex_home / "auth.json").write_text("{")
    ended = run_in_container(place, "partial", "doctor", "--json")
    report = json.loads(ended.out)
    assert ended.status == 1
    assert "login" in [one["subject"] for one in report["findings"] if one["fine"] is False]

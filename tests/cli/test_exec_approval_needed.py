"""`exec` asks nobody: a task that needed an approval the user wants to give ends with a code of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import call, custom_call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import Finished, run

DANGEROUS = call("c1", "exec_command", {"cmd": "git clean -fdx"})
PATCH = "*** Begin Patch\n*** Add File: made.txt\n+made\n*** End Patch\n"
WRITE = ("-s", "workspace-write")
POLICY = ("-c", "approval_policy=on-request")


def ask(place: Place, *steps: Any, flags: tuple[str, ...] = ()) -> Finished:
    """Run the calls, one request each, and let the model answer."""
    with fake_model(place, *([step] for step in steps), [say("I could not.")]):
        return run(place, "exec", *POLICY, *flags, "go")


def test_a_task_without_its_approval_fails_and_the_answer_is_printed(place: Place, tmp_path: Path) -> None:
    flags = (*WRITE, "--json", "--artifacts", str(tmp_path / "out"))
    ended = ask(place, DANGEROUS, flags=flags)
    failure = ended.events[-1]["error"]
    assert (ended.status, failure["code"]) == (73, "approval_needed")
    assert failure["message"].startswith("the task needs an approval, and nobody can be asked here: ")
    result = json.loads((tmp_path / "out/result.json").read_bytes())
    assert (result["status"], result["code"], result["answer"]) == ("failed", "approval_needed", "I could not.")
    assert ask(place, DANGEROUS, flags=WRITE).out == "I could not.\n"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (call("c1", "exec_command", {"cmd": "git push"}), "ask me"),
        (
            call("c1", "exec_command", {"cmd": "ls", "sandbox_permissions": "require_escalated", "justification": "x"}),
            "outside the sandbox",
        ),
    ],
)
def test_rules_and_escalations_can_need_one(place: Place, step: Any, reason: str) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "own.rules").write_text('prefix_rule(["git", "push"], "prompt", "ask me")\n')
    ended = ask(place, step)
    [line] = [line for line in ended.err.splitlines() if line.startswith("ERROR: ")]
    assert (ended.status, reason in line) == (73, True), line


def test_a_hook_that_wants_a_question_can_need_one(place: Place) -> None:
    verdict = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}
    use_hooks(place, PreToolUse=[entry(f"echo '{json.dumps(verdict)}'")])
    assert ask(place, call("c1", "exec_command", {"cmd": "echo hello"})).status == 73


@pytest.mark.parametrize(("command", "status"), [("ls", 73), ("cat README.md", 73), ("false", 73), ("touch x", 0)])
def test_only_work_that_was_done_afterwards_makes_up_for_it(place: Place, command: str, status: int) -> None:
    ended = ask(place, DANGEROUS, call("c2", "exec_command", {"cmd": command}), flags=WRITE)
    assert ended.status == status, ended.err


def test_work_done_before_does_not_make_up_for_it(place: Place) -> None:
    first = call("c0", "exec_command", {"cmd": "touch x"})
    assert ask(place, first, DANGEROUS, flags=WRITE).status == 73


def test_a_patch_afterwards_makes_up_for_it(place: Place) -> None:
    assert ask(place, DANGEROUS, custom_call("c2", "apply_patch", PATCH), flags=WRITE).status == 0


def test_a_patch_that_the_sandbox_refuses_needs_no_approval(place: Place) -> None:
    assert ask(place, custom_call("c1", "apply_patch", PATCH)).status == 0


@pytest.mark.parametrize("flags", [(), ("-c", "approval_policy=never")])
def test_who_wants_no_questions_gets_no_failure(place: Place, flags: tuple[str, ...]) -> None:
    with fake_model(place, [DANGEROUS], [say("I could not.")]):
        ended = run(place, "exec", *WRITE, *flags, "go")
    assert (ended.status, ended.out) == (0, "I could not.\n")


def test_what_a_rule_or_a_hook_forbids_needs_no_approval(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "own.rules").write_text('prefix_rule(["uname"], "forbidden", "not here")\n')
    assert ask(place, call("c1", "exec_command", {"cmd": "uname"})).status == 0
    use_hooks(place, PreToolUse=[entry("echo no >&2; exit 2")])
    assert ask(place, call("c1", "exec_command", {"cmd": "date"})).status == 0


def test_the_same_command_goes_on_where_an_approval_was_missing(place: Place) -> None:
    with fake_model(place, [DANGEROUS], [say("I could not.")], [say("done")]):
        assert run(place, "exec", *POLICY, *WRITE, "--session-id", "job", "go").status == 73
        again = run(place, "exec", *POLICY, *WRITE, "--session-id", "job", "go")
    assert (again.status, again.out) == (0, "done\n")

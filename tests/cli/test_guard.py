"""The guard against accidents: in `exec` and in a session, inside the sandbox and with full access."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import run
from tests.support.session import scripted_session

# Temporary directories hold the home of these tests, which no user's do.
OVERRIDES = ("sandbox_workspace_write.exclude_slash_tmp=true", "sandbox_workspace_write.exclude_tmpdir_env_var=true")
ONLINE = "sandbox_workspace_write.network_access=true"
SANDBOXES = ("workspace-write", "danger-full-access")
# They stand in for programs that would do harm, or are not installed.
PROGRAMS = (
    "cargo",
    "dd",
    "doas",
    "docker",
    "find",
    "kubectl",
    "mkfs.ext4",
    "npm",
    "poetry",
    "rm",
    "sudo",
    "uv",
    "yarn",
)

# Neither a question nor a refusal anywhere.
HARMLESS = (
    "rm -rf build",
    "rm -rf ./build/*",
    "cd build && rm -rf *",
    "cd build && rm -rf .",
    "rm -f *.txt",
    "rm -rf node_modules dist",
    'rm -rf "$PWD/build"',
    "rm README.md",
    "rm -f ~/x",
    "git reset --hard",
    "git checkout -- .",
    "git rm -rf build",
    "git clean -fd",
    "git clean -nfdx",
    "git stash drop",
    "git push origin main",
    "git push --dry-run --force",
    "git commit -m 'rm -rf /'",
    "echo rm -rf /",
    "kubectl delete pod x",
    "docker volume rm x",
    "find . -name '*.pyc' -delete",
    "find build -delete",
    "dd if=/dev/zero of=disk.img",
    "dd if=x of=/dev/null",
    "mkfs.ext4 disk.img",
    "npm run publish",
    "npm publish --dry-run",
    "cargo build",
)
# A session asks; `exec` runs them, because the sandbox stops what they do.
STOPPED = (
    "rm -rf .git",
    "rm -rf .git/",
    "rm -rf ~",
    'rm -rf "$HOME"',
    'rm -rf "${HOME}/"*',
    "env X=1 rm -rf ~",
    "H=$HOME; rm -r $H",
    "bash -c 'rm -rf ~'",
    "sudo -n rm -rf ~/",
    "doas -u root rm -rf ~",
    "rm -rf /usr/local/lib",
    "rm -rf ../../other",
    "find ~ -delete",
    "dd if=x of=/dev/sda bs=1M",
    "mkfs.ext4 /dev/sdb1",
    "git push --force",
    "git push -fu origin main",
    "git -C . push origin +main",
    "git push --force-with-lease",
    "git push origin --delete main",
    "npm publish",
    "npm --registry x publish",
    "yarn npm publish",
    "cargo publish",
    "twine upload dist/x",
    "python3 -m twine upload dist/x",
    "uv publish",
    "poetry publish --build",
)
# A session asks; `exec` refuses.
REFUSED = (
    "rm -rf .",
    "rm -rf ./",
    "rm -rf *",
    "rm -rf {*,.*}",
    "rm -rf ..",
    "rm -rf /",
    "rm -r --force -- /",
    "rm -Rf /*",
    "cd / && rm -rf .",
    "cd build/.. && rm -rf *",
    'rm -rf "$PWD"',
    'rm -rf "$(pwd)"/',
    'D=.; rm -rf "$D"',
    "bash -c 'rm -rf .'",
    "bash -c \"bash -lc 'rm -rf .'\"",
    "sh <<E\nrm -rf .\nE",
    "echo 'rm -rf .' | sh",
    "eval 'rm -rf .'",
    "if true; then command rm -rf .; fi",
    "f() { rm -rf .; }; f",
    "echo $(rm -rf .)",
    "env -i nice -n 5 rm -rf .",
    "sudo rm -rf .",
    "find . -delete",
    "find . -mindepth 1 -delete",
    "find -type f -exec rm {} +",
    "git clean -fdx",
    "git clean -fX",
    "git clean -ffd",
    "git -c clean.requireForce=false clean -dx",
    "rm -rf .git; git clean -fdx",
    "ls && git clean -xdf | cat",
)
# With full access these run for real if the programs above are not found first.
HARMFUL = ("rm -Rf /*", "rm -rf /usr/local/lib")
ALL = tuple(command for command in (*HARMLESS, *STOPPED, *REFUSED) if command not in HARMFUL)


@pytest.fixture
def guarded(place: Place) -> Place:
    directory = place.home / "programs"
    directory.mkdir()
    for name in PROGRAMS:
        program = directory / name
        program.write_text("#!/bin/sh\necho it ran\n")
        program.chmod(0o755)
    place.write("build/x", "x\n")
    return place.with_env(PATH=f"{directory}{os.pathsep}{place.env['PATH']}")


def calls(commands: Sequence[str]) -> list[list[Any]]:
    return [
        [call(f"c{number}", "exec_command", {"cmd": command, "login": False})]
        for number, command in enumerate(commands)
    ]


def run_in_exec(place: Place, commands: Sequence[str], sandbox: str, *more: str) -> dict[str, str]:
    """The refusals of `exec`; empty for what it ran."""
    flags = [flag for override in (*OVERRIDES, *more) for flag in ("-c", override)]
    with fake_model(place, *calls(commands), [say("done")]) as model:
        ended = run(place, "exec", "-s", sandbox, *flags, "go")
    assert not ended.has_traceback
    outputs = [model.requests[-1].output_of(f"c{number}") for number in range(len(commands))]
    is_run = [output.startswith("Chunk ID") for output in outputs]
    return {command: "" if ran else output for command, output, ran in zip(commands, outputs, is_run, strict=True)}


async def run_in_session(place: Place, commands: Sequence[str], sandbox: str) -> dict[str, str]:
    """The question of a session about each command, answered with no; empty where none was asked."""
    question = dict.fromkeys(commands, "")
    async with scripted_session(
        place,
        *calls(commands),
        [say("done")],
        sandbox=sandbox,
        approval="on-request",
        can_ask=True,
        overrides=OVERRIDES,
    ) as (_, watched):

        def refuse(event: events.Event) -> None:
            if isinstance(event, events.QuestionRaised) and isinstance(event.question, ApprovalQuestion):
                question[commands[int(event.question.call_id[1:])]] = event.question.reason
                answer = watched.session.submit(AnswerQuestion(event.question.id, None))
                watched.tasks.append(asyncio.ensure_future(answer))

        watched.session.subscribe(refuse)
        assert isinstance(await watched.say("go"), events.TurnCompleted)
    return question


def test_exec_refuses_in_the_sandbox_only_what_that_does_not_stop(guarded: Place) -> None:
    refusals = run_in_exec(guarded, (*HARMLESS, *STOPPED, *REFUSED), "workspace-write")
    assert {command for command, refusal in refusals.items() if refusal} == set(REFUSED)
    for command in REFUSED:
        assert refusals[command].startswith("refused: the command is dangerous: it deletes ")
        assert "the user can allow it with `-s danger-full-access`, or with a rule" in refusals[command]


async def test_a_session_asks_in_the_sandbox(guarded: Place) -> None:
    question = await run_in_session(guarded, (*HARMLESS, *STOPPED, *REFUSED), "workspace-write")
    assert {command for command, reason in question.items() if reason} == {*STOPPED, *REFUSED}
    assert all(reason.startswith("the command is dangerous: it ") for reason in question.values() if reason)


def test_exec_refuses_nothing_with_full_access(guarded: Place) -> None:
    assert run_in_exec(guarded, ALL, "danger-full-access") == dict.fromkeys(ALL, "")


async def test_a_session_asks_nothing_with_full_access(guarded: Place) -> None:
    assert await run_in_session(guarded, ALL, "danger-full-access") == dict.fromkeys(ALL, "")


def test_exec_refuses_to_publish_where_the_network_is_on(guarded: Place) -> None:
    commands = ("git push --force", "npm publish", "python3 -m twine upload x", "ssh host 'rm -rf /srv'", "git push")
    refusals = run_in_exec(guarded, commands, "workspace-write", ONLINE)
    assert [bool(refusal) for refusal in refusals.values()] == [True, True, True, True, False]


def test_the_status_and_the_last_line_name_what_allows_it(guarded: Place) -> None:
    with fake_model(guarded, *calls(["git clean -fdx"]), [say("done")]):
        ended = run(guarded, "exec", "-s", "workspace-write", "-c", "approval_policy=on-request", "go")
    assert ended.status == 73
    assert "`-s danger-full-access`" in ended.err.splitlines()[-1]


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_rule_of_the_user_allows_and_forbids_everywhere(guarded: Place, sandbox: str) -> None:
    rules = guarded.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "own.rules").write_text(
        'prefix_rule(["git", "clean"])\nprefix_rule(["git", "reset"], "forbidden", "no")\n'
        'prefix_rule(["rm"], "prompt", "look")\n'
    )
    commands = ("git clean -fdx", "git reset --hard", "rm x", "bash -c 'sudo rm -rf x'", "printf hi")
    refusals = run_in_exec(guarded, commands, sandbox)
    assert [bool(refusal) for refusal in refusals.values()] == [False, True, True, True, False]
    question = await run_in_session(guarded, commands, sandbox)
    ruled = "a rule of the user wants to be asked: look"
    assert list(question.values()) == ["", "", ruled, ruled, ""]


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_hook_of_the_user_refuses_everywhere(guarded: Place, sandbox: str) -> None:
    use_hooks(guarded, PreToolUse=[entry("echo not now >&2; exit 2", "Bash")])
    assert run_in_exec(guarded, ["rm -rf build"], sandbox) == {"rm -rf build": "blocked by a PreToolUse hook: not now"}

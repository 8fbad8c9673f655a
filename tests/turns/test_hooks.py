"""Hooks around a turn, as the model, the user and the hooks themselves see them."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact, Steer, TextInput
from tests.support.agents import cast, spawn, standing, wait
from tests.support.fake_responses import FakeResponses, Request, call, custom_call, fake_model, say
from tests.support.home import Place
from tests.support.hooks import CONTEXT, FORMAT, NO_PUSH, entry, hook_inputs, noting, saying, use_hooks, write_script
from tests.support.script import shell
from tests.support.session import scripted_session, watched_session


def patch_call(call_id: str, text: str) -> Any:
    return custom_call(call_id, "apply_patch", text)


def texts(request: Request, role: str) -> list[str]:
    return [part["text"] for one in request.input if one.get("role") == role for part in one["content"]]


def specific(event: str, **fields: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **fields}}


BLOCKED = "blocked by a PreToolUse hook: BLOCKED: git push is not allowed"


@pytest.mark.parametrize(
    "cmd",
    [
        "git push",
        "cd . && git push origin main",
        "bash -c 'git push'",
        "bash -lc \"bash -c 'git  push'\"",
        "eval 'git push'",
    ],
)
async def test_a_published_hook_blocks_git_push_wherever_a_command_has_it(place: Place, cmd: str) -> None:
    use_hooks(place, PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")])
    async with scripted_session(place, [shell("c1", cmd)], [say("done")]) as (model, watched):
        ended = await watched.say("push it")

    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("c1") == BLOCKED
    [finished] = watched.of(events.CommandFinished)
    assert (finished.status, finished.exit_code) == ("declined", None)
    assert watched.warnings == [
        f"a PreToolUse hook blocked `{cmd}`: BLOCKED: git push is not allowed".replace("  ", " ")
    ]


async def test_a_hook_for_the_beginning_of_a_command_sees_the_scripts_inside_it_too(place: Place) -> None:
    only_at_the_start = 'read -r told; case "$told" in *\'"command":"git push\'*) echo no >&2; exit 2;; esac'
    use_hooks(place, PreToolUse=[entry(only_at_the_start, "Bash")])
    async with scripted_session(
        place, [shell("c1", "sudo bash -c 'git push --force'")], [shell("c2", "echo git push")], [say("done")]
    ) as (model, watched):
        await watched.say("push it")

    assert model.requests[1].output_of("c1") == "blocked by a PreToolUse hook: no"
    assert model.requests[2].output_of("c2").endswith("git push\n")


async def test_what_is_typed_into_a_running_shell_is_a_command_to_hooks(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")])
    number: list[int] = []

    def typed(call_id: str, chars: str) -> Any:
        def answer(request: Request) -> Any:
            output = request.output_of("c1")
            number[:] = number or [int(output.split("session ID ")[1].split()[0])]
            return [call(call_id, "write_stdin", {"session_id": number[0], "chars": chars, "yield_time_ms": 250})]

        return answer

    async with scripted_session(
        place,
        [shell("c1", "bash --norc", tty=True, yield_time_ms=250)],
        typed("c2", "git pu"),
        typed("c3", "sh origin\n"),
        [say("done")],
    ) as (model, watched):
        await watched.say("push it")

    assert model.requests[3].output_of("c3") == BLOCKED
    assert "exited" not in model.requests[3].output_of("c2")


async def test_a_formatter_runs_on_each_file_of_a_patch(place: Place) -> None:
    use_hooks(place, PostToolUse=[entry(write_script(place, "format.sh", FORMAT), "Edit|MultiEdit|Write")])
    place.write("old.py", "a = 1\n")
    text = (
        "*** Begin Patch\n*** Add File: new.py\n+b = 2   \n*** Add File: new.txt\n+c   \n"
        "*** Update File: old.py\n@@\n-a = 1\n+a = 3   \n*** End Patch\n"
    )
    async with scripted_session(place, [patch_call("c1", text)], [say("done")]) as (_, watched):
        await watched.say("go")

    assert (place.repo / "new.py").read_text() == "b = 2\n"
    assert (place.repo / "old.py").read_text() == "a = 3\n"
    assert (place.repo / "new.txt").read_text() == "c   \n"
    assert watched.warnings == []


async def test_a_hook_adds_context_behind_what_the_user_says(place: Place) -> None:
    use_hooks(place, UserPromptSubmit=[entry(write_script(place, "context.sh", CONTEXT))])
    async with scripted_session(place, [say("hello")], [say("again")]) as (model, watched):
        await watched.say("hi")
        await watched.say("more")

    said = [texts(request, "user")[-1] for request in model.requests]
    assert said == ["hi", "more"]
    last = model.requests[1].input[-1]
    assert last["role"] == "developer"
    assert last["content"][0]["text"] == "<hook_context>\nCurrent branch: main\n</hook_context>"


async def test_a_hook_is_called_in_the_words_of_other_tools(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(noting(place), "")], PostToolUse=[entry(noting(place), "Bash")])
    async with scripted_session(place, [shell("c1", "echo hi", yield_time_ms=9000)], [say("done")]) as (_, watched):
        await watched.say("go")
        turn = watched.of(events.TurnStarted)[0].turn_id

    shared = {
        "session_id": watched.session.thread_id,
        "transcript_path": str(place.rollouts()[0]),
        "cwd": str(place.repo),
        "permission_mode": "bypassPermissions",
        "model": "gpt-5.1-codex",
        "turn_id": turn,
    }
    value = {"command": "echo hi", "login": False, "yield_time_ms": 9000}
    response = {
        "stdout": "hi\n",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "exit_code": 0,
        "output": "hi\n",
    }
    call_fields = {"tool_name": "Bash", "tool_input": value, "tool_use_id": "c1"}
    assert hook_inputs(place) == [
        {**shared, "hook_event_name": "PreToolUse", **call_fields},
        {**shared, "hook_event_name": "PostToolUse", **call_fields, "tool_response": response},
    ]


async def test_every_tool_has_hooks(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(noting(place), "*")])
    text = "*** Begin Patch\n*** Add File: x.txt\n+x\n*** End Patch\n"
    async with scripted_session(
        place,
        [call("c1", "update_plan", {"plan": [{"step": "a", "status": "pending"}]})],
        [patch_call("c2", text)],
        [shell("c3", f"apply_patch <<'EOF'\n{text.replace('x.txt', 'y.txt')}EOF\n")],
        [call("c4", "view_image", {"path": "none.png"})],
        [call("c5", "shell", {"command": ["bash", "-c", "echo hi"]})],
        [say("done")],
    ) as (_, watched):
        await watched.say("go")

    seen = sorted(
        (one["tool_use_id"], one["tool_name"], one["tool_input"].get("file_path")) for one in hook_inputs(place)
    )
    assert seen == [
        ("c1", "update_plan", None),
        ("c2", "apply_patch", str(place.repo / "x.txt")),
        ("c3", "Bash", None),
        ("c3", "apply_patch", str(place.repo / "y.txt")),
        ("c4", "view_image", "none.png"),
        ("c5", "Bash", None),
    ]


async def test_a_patch_in_a_command_is_an_edit_to_hooks(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("echo 'keep out' >&2; exit 2", "Edit|Write")])
    patch = "*** Begin Patch\n*** Add File: y.txt\n+x\n*** End Patch\n"
    with FakeResponses([shell("c1", f"apply_patch <<'EOF'\n{patch}EOF\n")], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")

    assert model.requests[1].output_of("c1") == "blocked by a PreToolUse hook: keep out"
    assert not (place.repo / "y.txt").exists()
    assert len(watched.of(events.Warned)) == 1


async def test_the_strictest_answer_counts(place: Place) -> None:
    allow = saying(specific("PreToolUse", permissionDecision="allow", permissionDecisionReason="fine"))
    deny = saying(specific("PreToolUse", permissionDecision="deny", permissionDecisionReason="not today"))
    use_hooks(place, PreToolUse=[entry(allow), entry(deny, "Bash"), entry(allow + " ")])
    async with scripted_session(place, [shell("c1", "touch made")], [say("done")]) as (model, watched):
        await watched.say("go")

    assert model.requests[1].output_of("c1") == "blocked by a PreToolUse hook: not today"
    assert not (place.repo / "made").exists()
    assert len(watched.of(events.CommandStarted)) == 0


async def test_a_hook_changes_what_is_run(place: Place) -> None:
    use_hooks(
        place,
        PreToolUse=[
            entry(saying(specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "echo first"}))),
            entry(saying(specific("PreToolUse", permissionDecision="allow", updatedInput={"command": "echo second"}))),
        ],
    )
    async with scripted_session(place, [shell("c1", "echo mine")], [say("done")]) as (model, watched):
        await watched.say("go")

    assert model.requests[1].output_of("c1").endswith("\nfirst\n")
    assert [line for line in watched.warnings if "the first one counts" in line] == watched.warnings
    assert len(watched.warnings) == 1


async def test_a_patch_is_changed_as_a_whole_or_not_at_all(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(saying(specific("PreToolUse", updatedInput={"content": "tidy\n"})), "Write")])
    patch = "*** Begin Patch\n*** Add File: a.txt\n+wild\n*** End Patch\n"
    async with scripted_session(place, [patch_call("c1", patch)], [say("done")]) as (_, watched):
        await watched.say("go")

    assert (place.repo / "a.txt").read_text() == "wild\n"
    assert watched.warnings == ["what a PreToolUse hook changes is no part of `apply_patch`: it runs as it is"]


async def test_a_hooks_allow_saves_the_question_and_lifts_no_sandbox(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(saying(specific("PreToolUse", permissionDecision="allow")))])
    outside = place.home / "outside"
    async with scripted_session(
        place,
        [shell("c1", "touch made")],
        [shell("c2", f"touch {outside}")],
        [say("done")],
        top="sandbox_workspace_write.exclude_slash_tmp = true\n",
        sandbox="workspace-write",
        approval="untrusted",
    ) as (model, watched):
        await watched.say("go")

    assert "exited with code 0" in model.requests[1].output_of("c1")
    assert "exited with code 1" in model.requests[2].output_of("c2")
    assert not outside.exists()
    assert watched.of(events.QuestionRaised) == []


async def test_a_hook_has_the_user_asked(place: Place) -> None:
    ask = saying(specific("PreToolUse", permissionDecision="ask", permissionDecisionReason="it costs money"))
    use_hooks(place, PreToolUse=[entry(ask, "Bash")])
    async with scripted_session(place, [shell("c1", "echo hi")], [say("done")], can_ask=True) as (model, watched):
        watched.session.subscribe(watched.agree)
        await watched.say("go")

    [question] = watched.of(events.QuestionRaised)
    assert vars(question.question)["reason"] == "a hook wants you to be asked: it costs money"
    assert model.requests[1].output_of("c1").endswith("hi\n")


async def test_where_nobody_can_be_asked_a_hooks_ask_is_a_no(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(saying(specific("PreToolUse", permissionDecision="ask")), "Bash")])
    async with scripted_session(place, [shell("c1", "touch made")], [say("done")]) as (model, watched):
        await watched.say("go")

    said = model.requests[1].output_of("c1")
    assert said == "refused: a hook wants you to be asked; nobody can be asked in this session"
    [finished] = watched.of(events.CommandFinished)
    assert (finished.status, finished.output) == ("declined", said)
    assert not (place.repo / "made").exists()
    assert watched.of(events.QuestionRaised) == []


@pytest.mark.parametrize("can_ask", [True, False])
async def test_a_hook_answers_for_the_user(place: Place, can_ask: bool) -> None:
    allow = saying(specific("PermissionRequest", decision={"behavior": "allow"}))
    use_hooks(place, PermissionRequest=[entry(allow, "Bash")])
    async with scripted_session(
        place,
        [shell("c1", "touch made")],
        [say("done")],
        sandbox="workspace-write",
        approval="untrusted",
        can_ask=can_ask,
    ) as (_, watched):
        await watched.say("go")

    assert (place.repo / "made").exists()
    assert watched.of(events.QuestionRaised) == []


async def test_a_hook_says_no_for_the_user(place: Place) -> None:
    deny = saying(specific("PermissionRequest", decision={"behavior": "deny", "message": "not on a Friday"}))
    use_hooks(place, PermissionRequest=[entry(deny)])
    async with scripted_session(
        place, [shell("c1", "touch made")], [say("done")], sandbox="workspace-write", approval="untrusted", can_ask=True
    ) as (model, watched):
        await watched.say("go")

    assert model.requests[1].output_of("c1") == "command declined by a PermissionRequest hook: not on a Friday"
    assert watched.warnings == ["a PermissionRequest hook said no: not on a Friday"]


async def test_what_hooks_say_has_no_secret_of_the_session_for_the_model(place: Place) -> None:
    keyed, key = place.with_env(FAKE_KEY="sk-0123456789abcdef"), "sk-0123456789abcdef"
    use_hooks(
        place,
        UserPromptSubmit=[entry(f"echo 'it is {key}'")],
        PreToolUse=[entry(f"echo 'not with {key}' >&2; exit 2")],
        Stop=[entry(f'read -r told; case "$told" in *"active\\":false"*) echo "use {key}" >&2; exit 2;; esac')],
    )
    with FakeResponses([shell("c1", "true")], [say("done")], [say("done again")]) as model:
        async with watched_session(keyed, model, env_key="FAKE_KEY") as watched:
            await watched.say("go")

    assert all(key.encode() not in request.raw for request in model.requests)
    assert texts(model.requests[0], "developer")[-1] == "<hook_context>\nit is [redacted]\n</hook_context>"
    assert model.requests[1].output_of("c1") == "blocked by a PreToolUse hook: not with [redacted]"
    assert "use [redacted]" in texts(model.requests[2], "user")[-1]


async def test_feedback_stands_behind_the_output(place: Place) -> None:
    use_hooks(place, PostToolUse=[entry(saying({"decision": "block", "reason": "run the linter"}), "Bash")])
    async with scripted_session(place, [shell("c1", "echo hi")], [say("done")]) as (model, watched):
        await watched.say("go")

    expected = "hi\n\n<hook_feedback>\nrun the linter\n</hook_feedback>"
    assert model.requests[1].output_of("c1").endswith(expected)
    assert watched.warnings == ["a PostToolUse hook has told the model: run the linter"]


async def test_a_tool_that_fails_has_hooks_of_its_own(place: Place) -> None:
    use_hooks(place, PostToolUse=[entry(noting(place))], PostToolUseFailure=[entry(noting(place))])
    async with scripted_session(place, [shell("c1", "echo no; exit 3")], [say("done")]) as (_, watched):
        await watched.say("go")

    [one] = hook_inputs(place)
    assert watched.of(events.TurnCompleted)
    assert (one["hook_event_name"], one["tool_response"]["exit_code"], one["is_interrupt"]) == (
        "PostToolUseFailure",
        3,
        False,
    )
    assert one["error"] == "Exit code 3\nno\n"


async def test_context_of_a_call_comes_after_its_output(place: Place) -> None:
    say_more = saying(specific("PostToolUse", additionalContext="the build is red"))
    use_hooks(place, PostToolUse=[entry(say_more)])
    async with scripted_session(place, [shell("c1", "true")], [say("done")]) as (model, watched):
        await watched.say("go")

    kinds = [one["type"] for one in model.requests[1].input[-2:]]
    assert kinds == ["function_call_output", "message"]
    assert texts(model.requests[1], "developer")[-1] == "<hook_context>\nthe build is red\n</hook_context>"
    assert watched.of(events.TurnCompleted)


async def test_a_blocked_prompt_never_reaches_the_model(place: Place) -> None:
    refuse = "read -r told; case \"$told\" in *secret*) echo 'it has a secret in it' >&2; exit 2;; esac"
    use_hooks(place, UserPromptSubmit=[entry(refuse)])
    async with scripted_session(place, [say("hello")]) as (model, watched):
        ended = await watched.say("my secret is swordfish")
        assert ended == events.TurnFailed(
            watched.of(events.TurnStarted)[0].turn_id,
            "the prompt was blocked by a UserPromptSubmit hook and is dropped: it has a secret in it",
            "prompt_refused",
            failure="refused",
        )
        await watched.say("hi")

    assert b"swordfish" not in model.requests[0].raw
    assert "swordfish" not in place.rollouts()[0].read_text()


async def test_a_stop_hook_sends_the_model_back_and_knows_that(place: Place) -> None:
    unless_active = noting(
        place, "case \"$told\" in *'\"stop_hook_active\":false'*) echo 'run the tests' >&2; exit 2;; esac"
    )
    use_hooks(place, Stop=[entry(unless_active)])
    async with scripted_session(place, [say("done")], [say("really done")]) as (model, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "really done"
    assert texts(model.requests[1], "user")[-1] == "<hook_prompt>\nrun the tests\n</hook_prompt>"
    assert [(one["stop_hook_active"], one["last_assistant_message"]) for one in hook_inputs(place)] == [
        (False, "done"),
        (True, "really done"),
    ]


async def test_a_stop_hook_that_never_lets_go_does_so_in_the_end(place: Place) -> None:
    use_hooks(place, Stop=[entry(saying({"decision": "block", "reason": "more"}))])
    async with scripted_session(place, *([say(f"answer {number}")] for number in range(9))) as (model, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert len(model.requests) == 9
    assert watched.warnings[-1] == "the turn ends: Stop hooks have sent the model back 8 times"


async def test_a_hook_ends_all_work(place: Place) -> None:
    use_hooks(place, PostToolUse=[entry(saying({"continue": False, "stopReason": "out of budget"}))])
    async with scripted_session(place, [shell("c1", "true")]) as (_, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert watched.warnings == ["a PostToolUse hook ends the turn: out of budget"]
    assert watched.session.history.items[-1].type == "function_call_output"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("sleep 60 & sleep 60", "did not end within 0.3 s and was killed"),
        ("yes", "printed more than 1 MiB and was killed"),
        ("head -c 1000 /dev/urandom", "wrote output that is not UTF-8"),
        ("printf '{\"decision\": '", "wrote output that looks like JSON but is invalid"),
        ('printf \'{"decision": 5, "hookSpecificOutput": []}\'', "answered with what is not understood"),
        ("echo broken >&2; exit 1", "failed with exit code 1: broken"),
        ("/does/not/exist", "failed with exit code 127"),
    ],
)
async def test_a_hook_gone_wrong_costs_a_warning_and_never_the_turn(place: Place, command: str, complaint: str) -> None:
    # The flood must be cut off for its size, not for its time.
    timeout = 60 if command == "yes" else 0.3 if "sleep" in command else 30
    use_hooks(place, PreToolUse=[entry(command, "Bash", timeout=timeout)])
    async with scripted_session(place, [shell("c1", "echo hi")], [say("done")]) as (model, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("c1").endswith("hi\n")
    [line] = watched.warnings
    assert line.startswith(f"the PreToolUse hook `{' '.join(command.split())}` ")
    assert complaint in line


async def test_what_a_hook_says_to_the_user_is_reported(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(saying({"systemMessage": "the tests are slow today"}), "Bash")])
    async with scripted_session(place, [shell("c1", "echo hi")], [say("done")]) as (_, watched):
        await watched.say("go")

    assert watched.warnings == ["PreToolUse hook: the tests are slow today"]


async def test_a_session_has_a_beginning_and_an_end(place: Place) -> None:
    use_hooks(
        place,
        SessionStart=[entry(noting(place, "echo 'mind the gap'"), "startup"), entry(noting(place), "resume")],
        SessionEnd=[entry(noting(place))],
        Setup=[entry(noting(place))],
    )
    with FakeResponses([say("hello")], [say("again")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("hi")
        async with watched_session(place, model, resume=watched.session.thread_id) as resumed:
            await resumed.say("more")

    assert texts(model.requests[0], "developer")[-1] == "<hook_context>\nmind the gap\n</hook_context>"
    assert [
        (one["hook_event_name"], one.get("source", one.get("reason", one.get("trigger")))) for one in hook_inputs(place)
    ] == [
        ("Setup", "init"),
        ("SessionStart", "startup"),
        ("SessionEnd", "other"),
        ("SessionStart", "resume"),
        ("SessionEnd", "other"),
    ]


async def test_a_compaction_is_reported_and_can_be_refused(place: Place) -> None:
    use_hooks(
        place,
        PreCompact=[entry(noting(place), "manual"), entry("test ! -e no || { echo later >&2; exit 2; }")],
        PostCompact=[entry(noting(place))],
        SessionStart=[entry(noting(place, "echo 'read the notes again'"), "compact")],
    )
    async with scripted_session(place, [say("hello")], [say("a summary")], [say("on we go")]) as (model, watched):
        await watched.say("hi")
        await watched.session.submit(Compact("the tests"))
        await watched.say("go on")
        place.write("no", "")
        await watched.session.submit(Compact())

    seen = [(one["hook_event_name"], one.get("custom_instructions"), one.get("source")) for one in hook_inputs(place)]
    assert seen == [
        ("PreCompact", "the tests", None),
        ("PostCompact", None, None),
        ("SessionStart", None, "compact"),
        ("PreCompact", "", None),
    ]
    assert "<hook_context>\nread the notes again\n</hook_context>" in texts(model.requests[2], "developer")
    assert watched.of(events.TurnFailed)[-1].message == "a PreCompact hook does not let it: later"


async def test_a_step_of_the_plan_is_done_when_hooks_agree(place: Place) -> None:
    refuse = noting(place, "case \"$told\" in *tests*) echo 'they fail' >&2; exit 2;; esac")
    use_hooks(place, TaskCompleted=[entry(refuse)])
    plan = [{"step": "write it", "status": "completed"}, {"step": "run the tests", "status": "completed"}]
    async with scripted_session(
        place,
        [call("c1", "update_plan", {"plan": [plan[0], {**plan[1], "status": "in_progress"}]})],
        [call("c2", "update_plan", {"plan": plan})],
        [say("done")],
    ) as (model, watched):
        await watched.say("go")

    assert model.requests[1].output_of("c1") == "Plan updated"
    assert "a hook does not count `run the tests` as done: they fail" in model.requests[2].output_of("c2")
    assert watched.warnings == ["a TaskCompleted hook does not count `run the tests` as done: they fail"]
    assert [one["task_subject"] for one in hook_inputs(place)] == ["write it", "run the tests"]
    assert len(watched.of(events.PlanUpdated)) == 1


async def test_a_skill_that_is_used_is_reported(place: Place) -> None:
    directory = place.codex_home / "skills" / "lint"
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\nname: lint\ndescription: Lints.\n---\nRun the linter.\n")
    use_hooks(place, SkillUse=[entry(noting(place), "lint"), entry(noting(place), "other")])
    async with scripted_session(place, [say("done")]) as (_, watched):
        await watched.say("use $lint")

    [one] = hook_inputs(place)
    assert (one["skill_name"], one["kind"], one["hook_event_name"]) == ("lint", "explicit", "SkillUse")
    assert watched.of(events.SkillUsed)


async def test_the_user_who_is_waited_for_is_notified(place: Place) -> None:
    use_hooks(place, Notification=[entry(noting(place), "permission_prompt")])
    async with scripted_session(
        place, [shell("c1", "touch made")], [say("done")], sandbox="workspace-write", approval="untrusted", can_ask=True
    ) as (_, watched):
        watched.session.subscribe(watched.agree)
        await watched.say("go")

    [one] = hook_inputs(place)
    assert one["message"] == "codex-py needs your permission: /bin/bash -c 'touch made'"


async def test_a_hook_in_the_background_is_not_waited_for(place: Place) -> None:
    pipe = place.home / "pipe"
    os.mkfifo(pipe)
    slow = f"cat {pipe}; exit 2"
    use_hooks(place, PreToolUse=[entry(slow, "Bash", **{"async": True})])
    async with scripted_session(place, [shell("c1", "echo hi")], [say("done")]) as (model, watched):
        ended = await watched.say("go")
        # It waits for this; had the turn waited for it, neither would have ended.
        await asyncio.to_thread(pipe.write_text, "go on\n")

    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("c1").endswith("hi\n")
    assert watched.of(events.CommandFinished)[0].status == "completed"


async def test_hooks_of_both_forms_and_of_all_layers_add_up(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(noting(place, "echo one"), "Bash")])
    command = json.dumps(noting(place, "echo two"))
    top = f'[[hooks.PreToolUse]]\nmatcher = "Bash"\ncommand = {command}\ntimeout = 5\n'
    with fake_model(place, [shell("c1", "true")], [say("done")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("go")

    assert [one["tool_use_id"] for one in hook_inputs(place)] == ["c1", "c1"]
    assert watched.warnings == []


async def test_hooks_can_be_switched_off(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry("exit 2", "Bash")])
    with FakeResponses([shell("c1", "echo hi")], [say("done")]) as model:
        async with watched_session(place, model, "features.hooks = false\n") as watched:
            await watched.say("go")

    assert model.requests[1].output_of("c1").endswith("hi\n")
    assert watched.warnings == []


async def test_hooks_hold_for_agents_too(place: Place) -> None:
    use_hooks(
        place,
        PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")],
        SubagentStart=[entry(noting(place, "echo 'be brief'"))],
        SubagentStop=[entry(noting(place), "default"), entry("exit 2", "explorer")],
        TeammateIdle=[entry(noting(place), "a matcher means nothing here")],
        Stop=[entry(noting(place))],
    )
    outputs: list[str] = []

    def answer(request: Request) -> Any:
        calls = [one.get("name") for one in request.input if one["type"] == "function_call"]
        if "push it yourself" in texts(request, "user"):
            if not calls:
                return [shell("p1", "git push")]
            outputs.append(request.output_of("p1"))
            outputs.append(texts(request, "developer")[-1])
            return [say("it did not work")]
        if not calls:
            return [call("c1", "spawn_agent", {"message": "push it yourself"})]
        if "wait_agent" not in calls:
            agent = json.loads(request.output_of("c1"))["agent_id"]
            return [call("c2", "wait_agent", {"ids": [agent], "timeout_ms": 60_000})]
        return [say("done")]

    async with scripted_session(place, *[answer] * 5, excuse={"threads"}) as (model, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted), ended
    assert outputs == [BLOCKED, "<hook_context>\nbe brief\n</hook_context>"]
    start, end, idle, last = hook_inputs(place)
    events_seen = [one["hook_event_name"] for one in (start, end, idle, last)]
    assert events_seen == ["SubagentStart", "SubagentStop", "TeammateIdle", "Stop"]
    assert {one["session_id"] for one in (start, end, idle, last)} == {watched.session.thread_id}
    assert [one.get("agent_type") for one in (start, end, idle, last)] == ["default"] * 3 + [None]
    # What ends is told of both files: that of the session, and the agent's own.
    files = (start["transcript_path"], last["transcript_path"])
    assert (end["agent_transcript_path"], end["transcript_path"]) == files
    assert start["turn_id"] == end["turn_id"] != last["turn_id"]
    assert (idle["teammate_name"], idle["team_name"]) == ("agent-1", watched.session.thread_id)
    assert len(model.requests) == 5


async def test_messages_to_an_agent_go_through_hooks(place: Place) -> None:
    refuse = noting(place, "case \"$told\" in *swordfish*) echo 'a secret' >&2; exit 2;; *) echo noted;; esac")
    use_hooks(place, UserPromptSubmit=[entry(refuse)])
    parts = {
        "go": [
            [spawn("s1", "it is swordfish"), spawn("s2", "look")],
            [wait("w1", "agent-1", timeout_ms=60_000)],
            [wait("w2", "agent-2", timeout_ms=60_000)],
            [say("done")],
        ],
        "look": [[say("seen")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")

    assert standing(watched) == [
        ("agent-1", "errored", "the prompt was blocked by a UserPromptSubmit hook and is dropped: a secret"),
        ("agent-2", "completed", "seen"),
    ]
    [request] = model.of("look")
    assert texts(request, "developer")[-1] == "<hook_context>\nnoted\n</hook_context>"
    assert sorted((one["prompt"], one.get("agent_type", "")) for one in hook_inputs(place)) == [
        ("go", ""),
        ("it is swordfish", "default"),
        ("look", "default"),
    ]


async def test_an_interrupt_stops_a_hook_and_answers_the_call(place: Place) -> None:
    pipe = place.home / "pipe"
    os.mkfifo(pipe)
    use_hooks(place, PreToolUse=[entry(f"echo on > {pipe}; sleep 300", "Bash")])
    async with scripted_session(place, [shell("c1", "touch made")]) as (model, watched):
        turn = asyncio.create_task(watched.say("go"))
        await asyncio.to_thread(pipe.read_text)
        watched.session.interrupt()
        assert isinstance(await turn, events.TurnInterrupted)
        output = watched.session.history.items[-2].decode()

    assert (output["call_id"], output["output"]) == ("c1", "aborted")
    assert not (place.repo / "made").exists()
    assert len(model.requests) == 1


async def test_what_is_said_to_a_running_turn_goes_through_hooks(place: Place) -> None:
    refuse = "read -r told; case \"$told\" in *swordfish*) echo 'a secret' >&2; exit 2;; *) echo noted;; esac"
    use_hooks(place, UserPromptSubmit=[entry(refuse)])
    async with scripted_session(place, [shell("c1", "true")], [say("done")]) as (model, watched):

        def steer(event: events.Event) -> None:
            if isinstance(event, events.CommandStarted):
                for text in ("it is swordfish", "and quick"):
                    op = Steer((TextInput(text),))
                    watched.tasks.append(asyncio.create_task(watched.session.submit(op)))

        watched.session.subscribe(steer)
        await watched.say("go")

    assert b"swordfish" not in model.requests[1].raw
    assert texts(model.requests[1], "user")[-1] == "and quick"
    context = "<hook_context>\nnoted\n</hook_context>"
    assert texts(model.requests[1], "developer").count(context) == 2
    assert watched.warnings == [
        "the prompt was blocked by a UserPromptSubmit hook and is dropped: a secret",
    ]

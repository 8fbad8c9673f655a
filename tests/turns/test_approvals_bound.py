"""A yes to a command that names files holds while these are as they were when the user gave it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import watched_session
from tests.turns.test_approvals import ALWAYS, run, turn
from tests.unit.patch_cases import patch

LEAVE = {"sandbox_permissions": "require_escalated", "justification": "May I deploy?"}
REWRITE = "*** Update File: deploy.sh\n@@\n-echo one\n+echo two"


def rewrite(number: int) -> object:
    return call(f"c{number}", "apply_patch", {"input": patch(REWRITE)})


@pytest.mark.parametrize("cmd", ["sh ./deploy.sh", "cd . && ./deploy.sh now", "cat notes | bash deploy.sh"])
async def test_a_yes_for_the_session_ends_when_the_script_changes(place: Place, cmd: str) -> None:
    place.write("deploy.sh", "echo one\n").chmod(0o755)
    calls = [run(1, cmd, **LEAVE), run(2, cmd, **LEAVE), rewrite(3), run(4, cmd, **LEAVE)]
    result = await turn(place, *calls, answers=("session", None), approval="on-request")
    assert ["one" in output for output in (result.outputs[0], result.outputs[1])] == [True, True]
    assert [question.call_id for question in result.asked] == ["c1", "c4"]
    assert result.asked[1].reason == (
        f"`{place.repo}/deploy.sh` changed since you allowed it for this session: it asks to run outside the sandbox"
    )
    assert "two" not in result.outputs[3]


async def test_a_script_that_was_not_there_yet_is_a_change(place: Place) -> None:
    calls = [run(1, "sh ./deploy.sh", **LEAVE), run(2, "echo echo evil > deploy.sh"), run(3, "sh ./deploy.sh", **LEAVE)]
    result = await turn(place, *calls, answers=("session", None), approval="on-request")
    assert [question.call_id for question in result.asked] == ["c1", "c3"]
    assert "evil" not in result.outputs[2]


async def test_inside_the_sandbox_too_but_not_for_what_the_command_itself_has_changed(place: Place) -> None:
    place.write("deploy.sh", "echo one\n")
    calls = [run(1, "sh ./deploy.sh > log"), run(2, "sh ./deploy.sh > log"), rewrite(3), run(4, "sh ./deploy.sh > log")]
    result = await turn(place, *calls, answers=("session", "once", None))
    assert [question.call_id for question in result.asked] == ["c1", "c3", "c4"]


@pytest.mark.parametrize("scope", ["project", "always"])
@pytest.mark.parametrize(("cmd", "file"), [("sh ./deploy.sh", "deploy.sh"), ("make deploy", "Makefile")])
async def test_a_rule_that_lets_a_script_out_ends_when_it_changes(
    place: Place, scope: str, cmd: str, file: str
) -> None:
    place.write(file, "deploy:\n\techo one\n")
    await turn(place, run(1, cmd, **LEAVE), answers=(scope,), approval="on-request")
    result = await turn(place, run(1, cmd, **LEAVE), approval="on-request")
    assert result.asked == []
    place.write(file, "deploy:\n\techo two\n")
    result = await turn(place, run(1, cmd, **LEAVE), answers=(scope,), approval="on-request")
    assert [question.reason for question in result.asked] == [
        f"`{place.repo}/{file}` changed since you made a rule for it: it asks to run outside the sandbox"
    ]
    assert (await turn(place, run(1, cmd, **LEAVE), approval="on-request")).asked == []
    if scope == "always":
        kept = (place.codex_home / ALWAYS).read_text()
        assert f"{place.repo}/{file}" in kept
        assert kept.count("files = ") == 2


async def test_a_script_that_changes_while_the_question_waits_is_asked_about_again(place: Place) -> None:
    script = place.write("deploy.sh", "echo one\n")
    questions: list[ApprovalQuestion] = []
    with FakeResponses([run(1, "sh ./deploy.sh", **LEAVE)], [say("done")]) as model:
        async with watched_session(place, model, sandbox="workspace-write", approval="on-request", can_ask=True) as it:

            def listen(event: events.Event) -> None:
                if isinstance(event, events.QuestionRaised) and isinstance(event.question, ApprovalQuestion):
                    questions.append(event.question)
                    script.write_text(f"echo {len(questions)}\n")
                    it.tasks.append(asyncio.ensure_future(it.session.submit(AnswerQuestion(event.question.id, "once"))))

            it.session.subscribe(listen)
            await it.say("go")
    assert len(questions) == 3
    assert questions[1].reason.startswith(f"`{place.repo}/deploy.sh` changed while you were asked: ")
    assert "changed each time the user was asked about it" in model.requests[1].output_of("c1")


async def test_a_rule_written_by_hand_is_bound_to_no_file(place: Place, tmp_path: Path) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "own.rules").write_text('prefix_rule(["sh", "./deploy.sh"], sandbox = "off")\n')
    place.write("deploy.sh", "echo one\n")
    result = await turn(place, run(1, "sh ./deploy.sh"), rewrite(2), run(3, "sh ./deploy.sh"), approval="on-request")
    assert result.asked == []
    assert "two" in result.outputs[2]

"""What is typed into a running command: the sandbox holds it inside, the user is asked about it outside."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.policy import ApprovalPolicy, GranularApproval
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses, Request, Stream, call, say
from tests.support.home import Place
from tests.support.session import watched_session
from tests.turns.test_approvals import answering

CAT = {"cmd": "cat", "tty": True, "login": False, "yield_time_ms": 250}
OUTSIDE = {"sandbox_permissions": "require_escalated", "justification": "May I?"}


def type_in(number: int, chars: str, gate: Path) -> Callable[[Request], Stream]:
    """Type into the session that the first call began; where nothing is typed, let what waits at the gate go on."""

    def play(request: Request) -> Stream:
        if not chars:
            gate.write_text("over")
        found = re.search(r"session ID (\d+)", request.output_of("c1"))
        assert found is not None, request.output_of("c1")
        return [call(f"c{number}", "write_stdin", {"session_id": int(found[1]), "chars": chars, "yield_time_ms": 250})]

    return play


async def typed(
    place: Place,
    start: dict[str, Any],
    *inputs: str,
    answers: tuple[str | None, ...] = (),
    approval: ApprovalPolicy = "on-request",
    sandbox: str = "workspace-write",
    can_ask: bool = True,
) -> tuple[list[ApprovalQuestion], list[str]]:
    """Start a command, type each input into it, and end; the questions, and what the model read of the inputs."""
    gate = place.repo / "gate"
    os.mkfifo(gate)
    plays = [type_in(number, chars, gate) for number, chars in enumerate(inputs, 2)]
    with FakeResponses([call("c1", "exec_command", start)], *plays, [say("done")]) as model:
        async with watched_session(place, model, sandbox=sandbox, approval=approval, can_ask=can_ask) as watched:
            questions = answering(watched, *answers)
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnCompleted), ended
    return questions, [model.requests[-1].output_of(f"c{number}") for number in range(2, 2 + len(inputs))]


async def test_typing_into_the_sandbox_needs_no_question(place: Place) -> None:
    questions, [outputs] = await typed(place, CAT, "hello\n")
    assert questions == []
    assert outputs.endswith("hello\r\nhello\r\n")


async def test_typing_into_a_command_outside_is_asked_about(place: Place) -> None:
    inputs = ("one\n", "git clean -fdx \u202ex\n", "one\n", "")
    # It ends when it is looked at, which would otherwise take as long as one waits for silence.
    start = {**CAT, **OUTSIDE, "cmd": "head -n 2; cat gate"}
    questions, outputs = await typed(place, start, *inputs, answers=("once", "once", None, "session"))
    where = "`/bin/bash -c 'head -n 2; cat gate'`, which runs outside the sandbox"
    assert questions[1:] == [
        ApprovalQuestion(
            id=questions[1].id,
            call_id="c2",
            command="one\n",
            cwd=place.repo,
            reason=f"it is typed into {where}",
            outside=True,
        ),
        ApprovalQuestion(
            id=questions[2].id,
            call_id="c3",
            command="git clean -fdx \\u{202e}x\n",
            cwd=place.repo,
            reason=f"it is typed into {where}; it is dangerous: {IGNORED}",
            outside=True,
        ),
        questions[1].replace(id=questions[3].id, call_id="c4"),
    ]
    assert outputs[0].endswith("one\r\none\r\n")
    assert outputs[1].startswith("input declined by the user")
    assert outputs[2].endswith("one\r\none\r\n")  # what was declined never arrived
    assert outputs[3].endswith("over")


async def test_a_yes_for_the_session_is_for_this_very_input(place: Place) -> None:
    inputs = ("y\n", "y\n", "n\n")
    questions, outputs = await typed(place, {**CAT, **OUTSIDE}, *inputs, answers=("once", "session", None))
    assert [question.call_id for question in questions] == ["c1", "c2", "c4"]
    assert outputs[1].endswith("y\r\ny\r\n")


async def test_ending_a_command_outside_needs_no_question(place: Place) -> None:
    questions, [outputs] = await typed(place, {**CAT, **OUTSIDE}, "\u0004", answers=("once",))
    assert len(questions) == 1
    assert "exited with code 0" in outputs


async def test_without_a_sandbox_in_the_session_nothing_is_outside_of_it(place: Place) -> None:
    questions, [outputs] = await typed(place, CAT, "hello\n", sandbox="danger-full-access")
    assert questions == []
    assert outputs.endswith("hello\r\nhello\r\n")


@pytest.mark.parametrize("approval", ["never", GranularApproval(False, True, True)])
@pytest.mark.parametrize("can_ask", [True, False])
async def test_where_nobody_is_asked_a_command_that_a_rule_let_out_gets_no_input(
    place: Place, approval: ApprovalPolicy, can_ask: bool
) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "mine.rules").write_text('prefix_rule(pattern = ["cat"], sandbox = "off")\n')
    questions, [outputs] = await typed(place, CAT, "hello\n", approval=approval, can_ask=can_ask)
    assert questions == []
    assert outputs.startswith(
        "refused: it is typed into `/bin/bash -c cat`, which runs outside the sandbox; nobody can be"
    )


IGNORED = "it deletes files that no undo brings back (`git clean`)"
SHELL = {**CAT, "cmd": "PS1= bash --norc --noprofile --noediting"}


async def test_what_a_shell_inside_would_run_is_judged_as_any_script(place: Place) -> None:
    questions, outputs = await typed(
        place, SHELL, "git clean -qfdx; echo a$((1+1))\n", "echo b$((1+1))\n", "git clean -fx\r", answers=("once", None)
    )
    assert [(question.command, question.outside) for question in questions] == [
        ("git clean -qfdx; echo a$((1+1))\n", False),
        ("git clean -fx␍", False),
    ]
    assert questions[0].reason == f"what is typed is dangerous: {IGNORED}"
    assert "a2\r\n" in outputs[0]
    assert "b2\r\n" in outputs[1]
    assert outputs[2].startswith("input declined by the user")


async def test_what_a_rule_forbids_cannot_be_typed_into_a_shell(place: Place) -> None:
    rules = place.codex_home / "rules"
    rules.mkdir(mode=0o700)
    (rules / "mine.rules").write_text(
        'prefix_rule(pattern = ["uname"], decision = "forbidden", justification = "no")\n'
    )
    questions, outputs = await typed(place, SHELL, "uname -s\n", "echo uname\n")
    assert questions == []
    assert outputs[0] == "command refused: forbidden by a rule of the user: no"
    assert "uname\r\nuname\r\n" in outputs[1]


async def test_where_nobody_can_answer_nothing_dangerous_is_typed_into_a_shell(place: Place) -> None:
    _, [outputs] = await typed(place, SHELL, "git clean -fdx\n", can_ask=False)
    assert outputs.startswith(f"refused: what is typed is dangerous: {IGNORED}; the user can allow it with")


async def test_with_full_access_anything_is_typed_into_a_shell(place: Place) -> None:
    _, [outputs] = await typed(place, SHELL, "git clean -qfdx; echo a$((1+1))\n", sandbox="danger-full-access")
    assert "a2\r\n" in outputs


async def test_what_no_shell_reads_is_no_command(place: Place) -> None:
    questions, [outputs] = await typed(place, CAT, "git clean -fdx\n")
    assert questions == []
    assert outputs.endswith("git clean -fdx\r\ngit clean -fdx\r\n")


@pytest.mark.parametrize(
    "pieces",
    [
        ("git clean -f", "x; echo a\n"),
        ("g", "it clean -fx\r"),
        ("git clean \\\n", "-fx\n"),
        ("git clean -fz", "\x7fx\n"),
        ("ls\x15git clean", " -fx\n"),
        ("git clean ls", "\x17-fx\n"),
        ("\x1b[200~git clean", " -fx\x1b[201~\n"),
    ],
)
async def test_a_line_that_is_typed_in_pieces_is_judged_whole(place: Place, pieces: tuple[str, ...]) -> None:
    questions, outputs = await typed(place, SHELL, *pieces, answers=(None,))
    assert [question.reason for question in questions] == [f"what is typed is dangerous: {IGNORED}"]
    assert len([one for one in outputs if one.startswith("input declined by the user")]) == 1


@pytest.mark.parametrize(
    "pieces", [("git clean -f", "\x03echo -x\n"), ("git clean ", "\x15echo -fx\n"), ("git clean\n", "-fx\n")]
)
async def test_what_was_taken_back_or_ended_is_no_part_of_the_next_line(place: Place, pieces: tuple[str, ...]) -> None:
    questions, _ = await typed(place, SHELL, *pieces)
    assert questions == []

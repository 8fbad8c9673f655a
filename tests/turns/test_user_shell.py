"""Commands the user runs from the prompt."""

from __future__ import annotations

import asyncio
import os
import re

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import UserShell
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import Watched, scripted_session, watched_session

RESULT = re.compile(
    r"<user_shell_command>\n<command>\n(.*)\n</command>\n<result>\nExit code: (-?\d+)\nDuration: \d+\.\d{4} seconds\n"
    r"Output:\n(.*)\n</result>\n</user_shell_command>",
    re.DOTALL,
)


def result_of(text: str) -> tuple[str, int, str]:
    """Command, exit code and output of what the model reads of a command."""
    found = RESULT.fullmatch(text)
    assert found, text
    return found[1], int(found[2]), found[3]


def start(watched: Watched, command: str) -> asyncio.Task[None]:
    task = asyncio.create_task(watched.session.submit(UserShell(command)))
    watched.tasks.append(task)
    return task


async def test_the_model_reads_what_it_came_to(place: Place) -> None:
    async with scripted_session(place, [say("I see")], sandbox="read-only") as (model, watched):
        await watched.session.submit(UserShell("echo hi; touch made; exit 3"))
        await watched.say("and?")
    [request] = model.requests
    *_, context, result, said = request.texts("user")
    assert context.startswith("<environment_context>")
    assert result_of(result) == ("echo hi; touch made; exit 3", 3, "hi\n")
    assert said == "and?"
    # As the user, outside of the session's read-only sandbox.
    assert (place.repo / "made").exists()


async def test_it_is_reported_as_a_command_of_the_user(place: Place) -> None:
    async with scripted_session(place) as (_, watched):
        await watched.session.submit(UserShell("echo hi"))
    started, finished = watched.of(events.CommandStarted)[0], watched.of(events.CommandFinished)[0]
    assert started == events.CommandStarted(started.call_id, "echo hi", place.repo, by_user=True)
    assert finished == events.CommandFinished(
        started.call_id, "echo hi", place.repo, "hi\n", 0, finished.seconds, "completed", by_user=True
    )
    assert watched.of(events.TurnStarted) == []


async def test_beside_a_turn_it_comes_before_its_next_request(place: Place) -> None:
    os.mkfifo(place.repo / "wait")
    script = [call("c1", "exec_command", {"cmd": "read x < wait; echo $x", "login": False})]
    async with scripted_session(place, script, [say("done")]) as (model, watched):

        def release(event: events.Event) -> None:
            if isinstance(event, events.CommandStarted) and not event.by_user:
                start(watched, "echo go > wait")

        watched.session.subscribe(release)
        await watched.say("go")
        await asyncio.gather(*watched.tasks)
    requests = model.requests
    assert requests[1].output_of("c1").endswith("Output:\ngo\n")
    items = watched.session.history.items
    [shell] = [index for index, item in enumerate(items) if b"<user_shell_command>" in item.encoded]
    [output] = [index for index, item in enumerate(items) if item.type == "function_call_output"]
    assert shell > output


async def test_an_interrupt_stops_it_and_not_the_next_turn(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    async with scripted_session(place, [say("ok")]) as (model, watched):
        watched.on(events.CommandOutput, watched.session.interrupt)
        await watched.session.submit(UserShell("echo begun; cat never"))
        ended = await watched.say("what happened?")
    assert isinstance(ended, events.TurnCompleted)
    assert watched.of(events.CommandFinished)[0].exit_code is None
    [result] = [text for text in model.requests[0].texts("user") if text.startswith("<user_shell_command>")]
    assert result_of(result) == ("echo begun; cat never", -1, "begun\n\n[stopped by the user]")


async def test_it_has_the_users_secrets_and_nobody_reads_them(place: Place) -> None:
    place = place.with_env(DEPLOY_TOKEN="s3cret-of-the-user")
    async with scripted_session(place, [say("ok")]) as (model, watched):
        await watched.session.submit(UserShell("echo ${#DEPLOY_TOKEN}; echo $DEPLOY_TOKEN"))
        await watched.say("and?")
    assert watched.of(events.CommandFinished)[0].output == "18\n[redacted]\n"
    assert b"s3cret" not in model.requests[0].raw
    assert b"s3cret" not in place.rollouts()[0].read_bytes()


async def test_a_key_of_a_provider_stays_out(place: Place) -> None:
    place = place.with_env(OPENAI_API_KEY="sk-12345678")
    async with scripted_session(place) as (_, watched):
        await watched.session.submit(UserShell("echo ${#OPENAI_API_KEY}"))
    assert watched.of(events.CommandFinished)[0].output == "0\n"


async def test_what_it_prints_is_capped(place: Place) -> None:
    async with scripted_session(place, [say("ok")], top="tool_output_token_limit = 1000") as (model, watched):
        await watched.session.submit(UserShell("yes 123456789 | head -n 100000"))
        await watched.say("and?")
    [result] = [text for text in model.requests[0].texts("user") if text.startswith("<user_shell_command>")]
    assert len(result) < 6000
    assert "truncated" in result


async def test_a_resumed_session_knows_it(place: Place) -> None:
    with FakeResponses([say("ok")]) as model:
        async with watched_session(place, model) as watched:
            await watched.session.submit(UserShell("echo remembered"))
            thread = watched.session.thread_id
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("what did I run?")
    assert any("remembered" in text for text in model.requests[0].texts("user"))


@pytest.mark.parametrize("command", ["no-such-program-at-all", "\x00", "\udcff"])
async def test_a_command_that_cannot_run_says_why(place: Place, command: str) -> None:
    async with scripted_session(place, [say("ok")]) as (_, watched):
        await watched.session.submit(UserShell(command))
        assert isinstance(await watched.say("and?"), events.TurnCompleted)
    [finished] = watched.of(events.CommandFinished)
    assert finished.status == "failed"
    assert finished.exit_code == 127
    assert finished.output

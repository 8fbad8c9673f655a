"""What is left when a turn is stopped."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.ops import ImageInput, UserTurn
from tests.support.fake_responses import call, delta, hang, say
from tests.support.home import Place
from tests.support.rollout import recorded_events
from tests.support.session import scripted_session


async def test_an_interrupted_call_is_answered_and_the_session_goes_on(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    commands = [
        call("c1", "exec_command", {"cmd": "cat never", "login": False}),
        call("c2", "exec_command", {"cmd": "cat never", "login": False}),
    ]
    async with scripted_session(place, commands, [say("still here")]) as (model, watched):
        watched.on(events.CommandStarted, watched.session.interrupt)
        stopped = await watched.say("go")
        ended = await watched.say("are you there?")
    assert isinstance(stopped, events.TurnInterrupted)
    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("c1") == "aborted"
    assert model.requests[1].output_of("c2") == "aborted"
    assert [text.split(">")[0] for text in model.requests[1].texts("user")][-2:] == [
        "<turn_aborted",
        "are you there?",
    ]


async def test_the_model_is_not_informed_of_it_where_the_user_does_not_want_that(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    waits = [call("c1", "exec_command", {"cmd": "cat never", "login": False})]
    async with scripted_session(place, waits, [say("ok")], top="agents.interrupt_message = false") as (model, watched):
        watched.on(events.CommandStarted, watched.session.interrupt)
        await watched.say("go")
        await watched.say("and now?")
    assert model.requests[1].output_of("c1") == "aborted"
    assert model.requests[1].texts("user")[-2:] == ["go", "and now?"]


async def test_what_had_ended_before_an_interrupt_keeps_its_output(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    commands = [
        call("c1", "exec_command", {"cmd": "echo done", "login": False}),
        call("c2", "exec_command", {"cmd": "cat never", "login": False}),
    ]
    async with scripted_session(place, commands, [say("ok")]) as (model, watched):
        watched.on(events.CommandFinished, watched.session.interrupt)
        await watched.say("go")
        await watched.say("and now?")
    assert model.requests[1].output_of("c1").endswith("Output:\ndone\n")
    assert model.requests[1].output_of("c2") == "aborted"


async def test_a_hanging_stream_is_left_at_once_and_its_half_message_is_gone(place: Place) -> None:
    async with scripted_session(place, [delta("half a sen"), hang(threading.Event())], [say("ok")]) as (model, watched):
        watched.on(events.TextDelta, watched.session.interrupt)
        stopped = await watched.say("go")
        await watched.say("again")
    assert isinstance(stopped, events.TurnInterrupted)
    assert b"half a sen" not in model.requests[1].raw


async def test_an_interrupt_is_on_disk(place: Place) -> None:
    async with scripted_session(place, [delta("x"), hang(threading.Event())]) as (_, watched):
        watched.on(events.TextDelta, watched.session.interrupt)
        await watched.say("go")
    [rollout] = place.rollouts()
    assert recorded_events(rollout)[-1] == "turn_aborted"


async def test_an_interrupt_of_what_never_begins_is_not_for_the_next_turn(place: Place) -> None:
    async with scripted_session(place, [say("ok")]) as (_, watched):
        reading = asyncio.create_task(watched.session.submit(UserTurn((ImageInput(Path("/no/such.png")),))))
        # Now it is at the picture, which a thread looks for.
        await asyncio.sleep(0)
        watched.session.interrupt()
        with pytest.raises(UserError, match="no such file"):
            await reading
        assert isinstance(await watched.say("go"), events.TurnCompleted)

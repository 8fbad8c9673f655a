"""What the user says while a turn runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from codex_py.protocol import events
from codex_py.protocol.ops import Steer, TextInput, UserInput, UserTurn
from tests.support.bodies import injected, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, delta, hang, say
from tests.support.home import Place
from tests.support.rollout import recorded_events
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_skill, repo_root


def steer(watched: Watched, text: str, after: Callable[[], object] | None = None) -> None:
    """Say something beside the turn; `after` is called once it is said."""
    task = asyncio.create_task(watched.session.submit(Steer((TextInput(text),))))
    if after is not None:
        task.add_done_callback(lambda _: after())
    watched.tasks.append(task)


async def test_a_running_turn_reads_it_with_its_next_request(place: Place) -> None:
    script = [call("c1", "exec_command", {"cmd": "echo one", "login": False})]
    async with scripted_session(place, script, [say("done")]) as (model, watched):
        watched.on(events.CommandStarted, lambda: steer(watched, "use tabs"))
        ended = await watched.say("format it")
    assert isinstance(ended, events.TurnCompleted)
    assert [one["type"] for one in model.requests[1].input][-3:] == ["function_call", "function_call_output", "message"]
    assert model.requests[1].texts("user")[-1] == "use tabs"
    assert watched.of(events.Steered) == [events.Steered(ended.turn_id, ("use tabs",))]
    assert len(watched.of(events.TurnStarted)) == 1


async def test_a_turn_goes_on_for_what_came_during_its_last_answer(place: Place) -> None:
    said = threading.Event()
    with FakeResponses([delta("do"), hang(said), say("done")], [say("and in tabs")]) as model:
        async with watched_session(place, model) as watched:
            watched.on(events.TextDelta, lambda: steer(watched, "in tabs, please", said.set))
            ended = await watched.say("format it")
    assert model.requests[1].texts("user")[-1] == "in tabs, please"
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "and in tabs"
    assert len(watched.of(events.TurnCompleted)) == 1


async def test_a_stopped_turn_is_followed_by_one_that_begins_with_it(place: Place) -> None:
    async with scripted_session(place, [delta("x"), hang(threading.Event())], [say("ok")]) as (model, watched):
        watched.on(events.TextDelta, lambda: steer(watched, "something else", watched.session.interrupt))
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert watched.of(events.Steered) == [events.Steered(ended.turn_id, ("something else",), new_turn=True)]
    assert watched.of(events.TurnStarted)[1].messages == ("something else",)
    assert [text.split(">")[0] for text in model.requests[1].texts("user")][-2:] == ["<turn_aborted", "something else"]


async def test_what_is_taken_back_never_reaches_the_model(place: Place) -> None:
    async with scripted_session(place, [delta("x"), hang(threading.Event())], [say("ok")]) as (model, watched):
        taken: list[UserInput] = []

        def think_again() -> None:
            taken.extend(watched.session.take_back())
            watched.session.interrupt()

        watched.on(events.TextDelta, lambda: steer(watched, "never mind", think_again))
        assert isinstance(await watched.say("go"), events.TurnInterrupted)
        await watched.say("again")
    assert taken == [TextInput("never mind")]
    assert b"never mind" not in model.requests[1].raw
    assert watched.of(events.Steered) == []


async def test_without_a_turn_it_begins_one(place: Place) -> None:
    async with scripted_session(place, [say("hi")]) as (model, watched):
        await watched.session.submit(Steer((TextInput("hello"),)))
    assert model.requests[0].texts("user")[-1] == "hello"
    assert isinstance(watched.seen[-1], events.TurnCompleted)


async def test_a_skill_it_names_comes_before_it(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    command = call("c1", "exec_command", {"cmd": "echo one", "login": False})
    async with scripted_session(place, [command], [say("done")], top=NO_BUNDLED) as (model, watched):
        watched.on(events.CommandStarted, lambda: steer(watched, "use $lint"))
        await watched.say("format it")
    last = model.requests[1]
    late = [injected(lint), user("use $lint")]
    expected = [user("format it"), command["item"], last.output_item("c1"), *late]
    listed = skill_list(f"- lint: does things (file: {lint})")
    assert last.body == whole_body(place, last, *expected, skills=listed)


async def test_a_turn_asked_for_while_one_runs_begins_after_it(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("two")]) as (model, watched):
        await asyncio.gather(*(watched.session.submit(UserTurn((TextInput(text),))) for text in ("first", "second")))
    result = [event for event in watched.seen if isinstance(event, events.TurnStarted | events.TurnCompleted)]
    assert [type(event).__name__ for event in result] == ["TurnStarted", "TurnCompleted"] * 2
    assert model.requests[1].texts("user")[-2:] == ["first", "second"]


async def test_an_interrupt_between_turns_does_not_stop_the_next_one(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("two")]) as (_, watched):
        await watched.say("first")
        watched.session.interrupt()
        assert isinstance(await watched.say("second"), events.TurnCompleted)


async def test_it_is_on_disk_as_a_message_of_the_user(place: Place) -> None:
    script = [call("c1", "exec_command", {"cmd": "echo one", "login": False})]
    async with scripted_session(place, script, [say("done")]) as (_, watched):
        watched.on(events.CommandStarted, lambda: steer(watched, "use tabs"))
        await watched.say("format it")
    [rollout] = place.rollouts()
    assert recorded_events(rollout).count("user_message") == 2

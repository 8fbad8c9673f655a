"""What a turn does with a model that repeats itself, in one answer or in its calls."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, added, arguments_delta, call, delta, hang, reasoning_delta, say
from tests.support.home import Place
from tests.support.script import shell
from tests.support.session import scripted_session, watched_session

SENTENCE = "I should look at the parser again. "


@pytest.mark.parametrize(
    ("pieces", "where"),
    [
        ([delta(SENTENCE)] * 500, "its answer"),
        ([reasoning_delta(SENTENCE)] * 500, "its reasoning"),
        (
            [added({"type": "function_call", "name": "exec_command"}), *[arguments_delta(SENTENCE)] * 1000],
            "a tool call",
        ),
        ([*[arguments_delta(SENTENCE, custom=True)] * 1000], "a tool call"),
    ],
    ids=["text", "reasoning", "arguments", "custom tool"],
)
async def test_an_answer_that_repeats_itself_is_stopped_and_not_asked_for_again(
    place: Place, pieces: list[dict[str, Any]], where: str
) -> None:
    # The model would go on for ever.
    async with scripted_session(place, [*pieces, hang(threading.Event())], [say("fine")]) as (model, watched):
        failed = await watched.say("go")
        requests = len(model.requests)
        ended = await watched.say("next")
    assert isinstance(failed, events.TurnFailed)
    assert requests == 1
    assert failed.message.startswith("the model was stopped because it repeats itself without end: `")
    assert failed.message.endswith(f"` in {where}")
    assert isinstance(ended, events.TurnCompleted)
    assert SENTENCE not in json.dumps(model.requests[1].input)


async def test_a_long_answer_with_a_table_and_code_is_not_stopped(place: Place) -> None:
    text = "| step | result |\n|---|---|\n" + "".join(f"| {number} | passed |\n" for number in range(1500))
    text += "```\n" + "\n".join("    values.append(0)" for _ in range(200)) + "\n```\n"
    pieces = [delta(text[start : start + 50]) for start in range(0, len(text), 50)]
    async with scripted_session(place, [*pieces, say(text)]) as (_, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == text


def same_call(number: int) -> list[dict[str, Any]]:
    return [shell(f"c{number}", "echo same")]


NOTICE = "This was call {} in a row with the same arguments and the same result."


async def test_the_model_reads_that_it_repeats_a_call_and_the_turn_fails_when_it_goes_on(place: Place) -> None:
    with FakeResponses(*(same_call(number) for number in range(1, 101)), [say("fine")]) as model:
        async with watched_session(place, model) as watched:
            failed = await watched.say("go")
            requests = len(model.requests)
            await watched.say("next")
    assert isinstance(failed, events.TurnFailed)
    assert requests == 100
    assert failed.message == (
        "the model was stopped because it called `exec_command` 100 times in a row with the same arguments and the "
        "same result"
    )
    last = model.requests[-1]
    assert "in a row" not in last.output_of("c9")
    assert NOTICE.format(10) in last.output_of("c10")
    assert NOTICE.format(100) in last.output_of("c100")


@pytest.mark.parametrize(
    "calls",
    [
        [shell(f"c{number}", f"echo {number}") for number in range(12)],
        [shell(f"c{number}", "echo >> log; wc -l < log") for number in range(12)],
        [shell(f"c{number}", "echo same" if number != 6 else "echo other") for number in range(12)],
    ],
    ids=["other arguments", "other result", "another call between"],
)
async def test_calls_that_differ_are_no_repetition(place: Place, calls: list[dict[str, Any]]) -> None:
    async with scripted_session(place, *([one] for one in calls), [say("done")]) as (model, watched):
        await watched.say("go")
    assert not [number for number in range(12) if "in a row" in model.requests[-1].output_of(f"c{number}")]


async def test_the_count_begins_again_with_a_turn(place: Place) -> None:
    plays = [*(same_call(number) for number in range(1, 8)), [say("one")]]
    plays += [*(same_call(number) for number in range(8, 15)), [say("two")]]
    async with scripted_session(place, *plays) as (model, watched):
        await watched.say("go")
        await watched.say("on")
    assert not [number for number in range(1, 15) if "in a row" in model.requests[-1].output_of(f"c{number}")]


async def test_asking_again_how_things_stand_is_no_repetition(place: Place) -> None:
    polls = [[call(f"p{number}", "list_agents", {})] for number in range(120)]
    async with scripted_session(place, *polls, [say("done")]) as (model, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert "in a row" not in model.requests[-1].output_of("p119")

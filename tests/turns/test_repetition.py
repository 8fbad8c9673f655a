"""What a turn does with a model that repeats itself, in one answer or in its calls."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import (
    FakeResponses,
    added,
    arguments_delta,
    delta,
    hang,
    reasoning_delta,
    say,
)
from tests.support.home import Place
from tests.support.session import watched_session

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
    with FakeResponses([*pieces, hang(threading.Event())], [say("fine")]) as model:
        async with watched_session(place, model) as watched:
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
    with FakeResponses([*pieces, say(text)]) as model:
        async with watched_session(place, model) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == text

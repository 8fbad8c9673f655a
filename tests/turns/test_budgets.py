"""A budget where somebody can be asked: the user decides whether the turn goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import Watched, watched_session

STEP = [call("c1", "exec_command", {"cmd": "true"})]


def answers(watched: Watched, word: str) -> None:
    def answer(event: events.Event) -> None:
        if isinstance(event, events.QuestionRaised):
            op = AnswerQuestion(event.question.id, word)
            watched.tasks.append(asyncio.create_task(watched.session.submit(op)))

    watched.session.subscribe(answer)


@pytest.mark.parametrize(("word", "more"), [("Go on", [[say("done")]]), ("Stop", [])])
async def test_the_user_is_asked_whether_to_go_on(place: Place, word: str, more: list[Any]) -> None:
    with FakeResponses(STEP, *more) as model:
        async with watched_session(place, model, "[budget.turn]\nmax_requests = 1\n", can_ask=True) as watched:
            answers(watched, word)
            ended = await watched.say("go")
            asked = [getattr(event.question, "question", "") for event in watched.of(events.QuestionRaised)]
    assert asked == ["The budget is used up: 1 of 1 requests for a turn. Go on?"]
    assert isinstance(ended, events.TurnCompleted) is (word == "Go on")

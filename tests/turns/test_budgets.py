"""A budget where somebody can be asked: the user decides whether the turn goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from tests.support.fake_chat import FakeChat
from tests.support.fake_responses import FakeResponses, Request, call, repeat, say
from tests.support.home import Place
from tests.support.session import Watched, watched_session
from tests.support.wire_dialects import DIALECTS, Dialect, shell

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
            question = [getattr(event.question, "question", "") for event in watched.of(events.QuestionRaised)]
    assert question == ["The budget is used up: 1 of 1 requests for a turn. Go on?"]
    assert isinstance(ended, events.TurnCompleted) is (word == "Go on")


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
async def test_a_budget_counts_the_requests_of_agents_at_work_to_the_last_one(place: Place, wire: Dialect) -> None:
    agent = FakeChat.agent_model

    def play(request: Request) -> Any:
        answered = wire.outputs(request)
        if request.body["model"] == agent:
            return wire.answer("", [shell(f"call_{len(answered)}", f"echo {len(answered)} >> log")])
        if "call_s" not in answered:
            return wire.answer("", [("call_s", "spawn_agent", {"message": "work on and on", "model": agent})])
        target = json.loads(answered["call_s"])["agent_id"]
        return wire.answer("", [(f"call_{len(answered)}", "wait_agent", {"targets": [target], "timeout_ms": 60_000})])

    with wire.server(repeat(play), excuse={"threads"}) as model:
        top = "[budget.session]\nmax_requests = 6\n"
        async with watched_session(place, model, top, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert "6 of 6 requests" in ended.message
    assert len(model.requests) == 6
    assert (place.repo / "log").read_text().splitlines() == ["0", "1", "2", "3"][: len(model.requests) - 2]

"""What a turn makes of a server that refuses, hangs up before it answers, or is not there."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    cut,
    failed,
    html,
    redirect,
    repeat,
    reset,
    say,
    status,
)
from tests.support.faults import check_gaps, is_back_off, meet, sent_after, shell
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session

RATE = "Rate limit reached, please try again in {}."


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (api_error(400, "no such field"), ["400 Bad Request: no such field"]),
        (api_error(400, "slow down", kind="rate_limit_exceeded"), ["400", "slow down"]),
        (api_error(400, "no money", kind="insufficient_quota"), ["400", "no money"]),
        (
            api_error(401, "bad key", headers={"x-request-id": "req_1"}),
            ["401", "bad key", "check the API key", "req_1"],
        ),
        (api_error(403, "not yours"), ["403 Forbidden: not yours"]),
        (html("<title>Just a moment...</title>", 403), ["403", "Just a moment..."]),
        (api_error(404, "no such model", kind="model_not_found"), ["404", "no such model"]),
        (status(404), ["404", "base_url"]),
        (status(405), ["405", "base_url"]),
        (api_error(413, "too large"), ["413", "too large"]),
        (api_error(422, "odd input"), ["422", "odd input"]),
        (api_error(429, "used up", kind="usage_limit_reached"), ["429", "used up"]),
        (api_error(429, "no money", kind="insufficient_quota"), ["429", "no money"]),
        (api_error(429, "not in your plan", kind="usage_not_included"), ["429", "not in your plan"]),
        (api_error(429, "later", headers={"retry-after": "7200"}), ["429", "later", "try again in 120 minutes"]),
        (html("<title>Sign in to the airport</title>"), ["Sign in to the airport", "base_url"]),
        (status(200, {"error": {"message": "out of memory"}}), ["200", "out of memory"]),
        (status(204), ["204"]),
        (redirect("https://elsewhere.example/v1", 301), ["301", "elsewhere.example"]),
        (redirect("https://elsewhere.example/v1", 308), ["308", "elsewhere.example"]),
    ],
)
async def test_what_will_not_pass_is_final_at_once(place: Place, answer: Any, words: list[str]) -> None:
    fault = await meet(place, answer)
    assert (fault.requests, fault.delays, fault.sent) == (1, [], ["user: next"])
    assert [word for word in words if word not in fault.message] == []
    assert fault.message.isprintable()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(place: Place, code: int) -> None:
    with FakeResponses() as elsewhere:
        fault = await meet(place, redirect(elsewhere.base_url + "/responses", code))
    assert (fault.requests, elsewhere.requests, elsewhere.gets) == (1, [], [])
    assert elsewhere.base_url in fault.message


@pytest.mark.parametrize(
    "answer",
    [
        *(api_error(code, "not now") for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        api_error(503, "full", kind="server_is_overloaded"),
        api_error(503, "slower", kind="slow_down"),
        html("<title>502 Bad Gateway</title>", 502),
        [cut()],
        [reset()],
    ],
)
async def test_what_may_pass_is_asked_again(place: Place, answer: Any) -> None:
    fault = await meet(place, answer, [say("done")])
    assert isinstance(fault.ended, events.TurnCompleted)
    assert (fault.requests, fault.sent) == (2, ["assistant: done", "user: next"])
    assert is_back_off(fault.delays)


@pytest.mark.parametrize(
    ("answer", "delay"),
    [
        (api_error(429, "later", headers={"retry-after": "0"}), 0.0),
        (api_error(429, "later", headers={"retry-after-ms": "30"}), 0.03),
        (api_error(429, RATE.format("20ms")), 0.02),
        (api_error(503, "later", headers={"retry-after-ms": "30"}), 0.03),
        ([failed("rate_limit_exceeded", RATE.format("25ms"))], 0.025),
    ],
)
async def test_the_server_may_say_how_long_to_wait(place: Place, answer: Any, delay: float) -> None:
    fault = await meet(place, answer, [say("done")])
    assert (fault.requests, fault.delays) == (2, [delay])


async def test_retries_wait_twice_as_long_each_time_and_end(place: Place) -> None:
    with FakeResponses(repeat(api_error(500, "boom"))) as model:
        async with watched_session(place, model, request_max_retries=3, stream_max_retries=3) as watched:
            ended = await watched.say("go")
    retries = watched.of(events.Retrying)
    check_gaps(model.requests, retries)
    assert [(retry.attempt, retry.limit) for retry in retries] == [(1, 3), (2, 3), (3, 3)]
    assert is_back_off([retry.delay for retry in retries])
    turn_id = watched.of(events.TurnStarted)[0].turn_id
    assert ended == events.TurnFailed(turn_id, "500 Internal Server Error: boom", failure="overloaded")


async def test_each_request_of_a_turn_has_a_budget_of_its_own(place: Place) -> None:
    boom = api_error(500, "boom")
    answers = [boom, [shell("c1", "echo one")], boom, [shell("c2", "echo two")], boom, [say("done")]]
    async with scripted_session(place, *answers, request_max_retries=1, stream_max_retries=1) as (model, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert sent_after(model.requests[-1], "go") == [
        "function_call c1",
        "output of c1: one",
        "function_call c2",
        "output of c2: two",
    ]


async def test_a_server_that_comes_up_while_it_is_waited_for_is_used(place: Place) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        later: list[FakeResponses] = []
        # Only its address is needed: it is another server that answers there.
        async with scripted_session(place, base_url=f"http://127.0.0.1:{port}/v1", connect_retry_seconds=60) as (
            _,
            watched,
        ):
            watched.on(events.Retrying, lambda: later or later.append(listening(port)))
            ended = await watched.say("go")
        [model] = later
        model.__exit__(None, None, None)
    assert isinstance(ended, events.TurnCompleted)
    assert {retry.limit for retry in watched.of(events.Retrying)} == {None}
    assert len(model.requests) == 1


def listening(port: int) -> FakeResponses:
    return FakeResponses([say("done")], port=port).__enter__()


async def test_a_server_that_stays_away_is_given_up_after_its_time(place: Place) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        async with scripted_session(
            place,
            [say("unused")],
            excuse={"unplayed"},
            base_url=f"http://127.0.0.1:{port}/v1",
            connect_retry_seconds=0.5,
        ) as (address, watched):
            ended = await watched.say("go")
    retries = watched.of(events.Retrying)
    assert sum(retry.delay for retry in retries) <= 0.5
    assert isinstance(ended, events.TurnFailed)
    address = f"the provider `fake` at `http://127.0.0.1:{port}/v1/responses`"
    assert ended.message == f"cannot connect to {address}: connection refused; is the server running?"

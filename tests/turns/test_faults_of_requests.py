"""What a turn makes of a server that refuses, hangs up before it answers, or is not there."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, api_error, failed, redirect, repeat, say
from tests.support.faults import check_gaps, is_back_off, meet, sent_after
from tests.support.home import Place
from tests.support.script import shell
from tests.support.session import scripted_session, watched_session

RATE = "Rate limit reached, please try again in {}."


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(place: Place, code: int) -> None:
    with FakeResponses() as elsewhere:
        fault = await meet(place, redirect(elsewhere.base_url + "/responses", code))
    assert (fault.requests, elsewhere.requests, elsewhere.gets) == (1, [], [])
    assert elsewhere.base_url in fault.message


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

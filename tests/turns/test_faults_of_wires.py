"""The faults of a server, the same on every API: nothing is lost, and no command runs twice."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import (
    Request,
    api_error,
    cut,
    end,
    hang,
    headers,
    html,
    raw,
    redirect,
    repeat,
    reset,
    stall_headers,
    status,
)
from tests.support.home import Place
from tests.support.session import watched_session
from tests.support.wire_dialects import DIALECTS, RESPONSES, Dialect, shell

every_wire = pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)

FINAL: list[tuple[Any, str]] = [
    (api_error(400, "no such field"), "400 Bad Request: no such field"),
    (api_error(400, "slow down", kind="rate_limit_exceeded"), "slow down"),
    (api_error(400, "no money", kind="insufficient_quota"), "no money"),
    (api_error(401, "bad key", headers={"x-request-id": "req_1"}), "check the API key"),
    (api_error(402, "pay first"), "pay first"),
    (api_error(403, "not yours"), "403 Forbidden: not yours"),
    (html("<title>Just a moment...</title>", 403), "Just a moment..."),
    (api_error(404, "no such model", kind="model_not_found"), "no such model"),
    (status(404), "base_url"),
    (status(405), "base_url"),
    (api_error(422, "odd input"), "odd input"),
    (api_error(429, "used up", kind="usage_limit_reached"), "used up"),
    (api_error(429, "no money", kind="insufficient_quota"), "no money"),
    (api_error(429, "not in your plan", kind="usage_not_included"), "not in your plan"),
    (api_error(429, "later", headers={"retry-after": "7200"}), "try again in 120 minutes"),
    (html("<title>Sign in to the airport</title>"), "Sign in to the airport"),
    (status(200, {"error": {"message": "out of memory"}}), "out of memory"),
    (status(200, {"odd": True}), "base_url"),
    (status(200, b"\x00\x01\x02", {"content-type": "application/octet-stream"}), "application/octet-stream"),
    (status(200, b"[1, 2", {"content-type": "application/json"}), "application/json"),
    (status(204), "204"),
    (redirect("https://elsewhere.example/v1", 301), "elsewhere.example"),
    (redirect("https://elsewhere.example/v1", 308), "elsewhere.example"),
]


@every_wire
async def test_what_will_not_pass_is_final_and_the_session_goes_on(place: Place, wire: Dialect) -> None:
    plays = [play for fault, _ in FINAL for play in (fault, wire.say("fine"))]
    with wire.server(*plays) as model:
        async with watched_session(place, model, wire_api=wire.wire) as watched:
            for number, (_, words) in enumerate(FINAL):
                ended = await watched.say(f"fault {number}")
                assert isinstance(ended, events.TurnFailed), words
                assert words in ended.message
                assert ended.message.isprintable()
                assert isinstance(await watched.say(f"again {number}"), events.TurnCompleted)
    assert watched.of(events.Retrying) == []
    assert wire.said(model.requests[-1]) == ["fine"] * (len(FINAL) - 1)


SOON = {"retry-after-ms": "1"}


def passing(wire: Dialect) -> list[Any]:
    half = wire.half("half")
    return [
        *(api_error(code, "not now", headers=SOON) for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)),
        html("<title>502 Bad Gateway</title>", 502),
        api_error(503, "full", kind="server_is_overloaded", headers=SOON),
        api_error(503, "slower", kind="slow_down", headers=SOON),
        [cut()],
        [reset()],
        [end()],
        [*half, cut()],
        [*half, reset()],
        [*half, end()],
        [*half, raw(b'data: {"type":"resp'), cut()],
        [*half, raw(b"\xff\xfe\n\n"), end()],
        [*half, wire.failed("server_error", "sorry")],
        [*half, wire.failed("overloaded_error", "full")],
        [stall_headers(1000.0)],
        [*half, hang(1000.0)],
        [raw(b": ping\n\n"), hang(1000.0)],
    ]


@every_wire
async def test_what_may_pass_is_asked_again_without_the_half_message(place: Place, wire: Dialect) -> None:
    faults = passing(wire)
    plays = [play for number, fault in enumerate(faults) for play in (fault, wire.say(f"whole {number}"))]
    with wire.server(*plays) as model:
        async with watched_session(place, model, wire_api=wire.wire, stream_idle_timeout_ms=300) as watched:
            for number in range(len(faults)):
                assert isinstance(await watched.say(f"fault {number}"), events.TurnCompleted), faults[number]
    # A kept connection that was closed before any byte came is opened again without a word.
    assert len(faults) - 2 <= len(watched.of(events.Retrying)) <= len(faults)
    assert wire.said(model.requests[-1]) == [f"whole {number}" for number in range(len(faults) - 1)]


class Forgetful:
    """A model that gives each turn two commands, breaks off, and asks again for those whose outputs it is not sent."""

    def __init__(self, wire: Dialect) -> None:
        self._wire = wire
        failure = [wire.failed("server_error", "sorry")]
        self.breaks = [[cut()], [reset()], [end()], [hang(1000.0)], failure, [raw(b"data: {"), cut()]]
        self.names = [f"{number}{half}" for number in range(len(self.breaks)) for half in "ab"]
        self._turn, self._broke = 0, False

    def __call__(self, request: Request) -> Any:
        here = [name for name in self.names if name.startswith(str(self._turn))]
        answered = self._wire.outputs(request)
        calls = [shell(f"call_{name}", f"echo {name} >> log; echo {name}") for name in here]
        calls = [one for one in calls if one[0] not in answered]
        if not calls:
            self._turn, self._broke = self._turn + 1, False
            return self._wire.say("done")
        if self._broke:
            return self._wire.answer("", calls)
        self._broke = True
        return [*self._wire.called("looking", calls), *self.breaks[self._turn]]


@every_wire
async def test_a_command_of_an_answer_that_breaks_off_runs_once(place: Place, wire: Dialect) -> None:
    forgetful = Forgetful(wire)
    with wire.server(repeat(forgetful)) as model:
        async with watched_session(place, model, wire_api=wire.wire, stream_idle_timeout_ms=500) as watched:
            for broken in forgetful.breaks:
                assert isinstance(await watched.say("go"), events.TurnCompleted), broken
            await watched.say("next")
    assert sorted((place.repo / "log").read_text().split()) == forgetful.names
    assert wire.outputs(model.requests[-1]) == {f"call_{name}": name for name in forgetful.names}


@every_wire
async def test_cut_for_ever_is_one_error_after_the_retries(place: Place, wire: Dialect) -> None:
    with wire.server(*[[*wire.half("half"), cut()]] * 3, wire.say("fine")) as model:
        options: dict[str, Any] = {"request_max_retries": 2, "stream_max_retries": 2}
        async with watched_session(place, model, wire_api=wire.wire, **options) as watched:
            ended = await watched.say("go")
            assert isinstance(await watched.say("next"), events.TurnCompleted)
    assert isinstance(ended, events.TurnFailed)
    assert ended.message.startswith("the answer was cut off: ")
    assert len(watched.of(events.Retrying)) == 2


@every_wire
@pytest.mark.parametrize("kind", [None, "text/plain", "application/octet-stream", "TEXT/EVENT-STREAM; charset=latin-1"])
async def test_a_stream_of_another_content_type_is_read(place: Place, wire: Dialect, kind: str | None) -> None:
    with wire.server([headers({"content-type": kind}), *wire.say("whole")]) as model:
        async with watched_session(place, model, wire_api=wire.wire) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert [event.text for event in watched.of(events.MessageDone)] == ["whole"]


def whole(wire: str, text: str, reason: str = "") -> Any:
    """An answer in one object, as servers without streams give it; `reason` ends it before its time."""
    said: dict[str, Any] = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    match wire:
        case "chat":
            choice = {"index": 0, "message": {**said, "content": text}, "finish_reason": reason or "stop"}
            return status(200, {"id": "x", "object": "chat.completion", "choices": [choice]})
        case "messages":
            return status(200, {"id": "x", "type": "message", **said, "stop_reason": reason or "end_turn"})
        case _:
            item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
            ended = {"incomplete_details": {"reason": reason}, "status": "incomplete"} if reason else {}
            return status(200, {"id": "x", "object": "response", "status": "completed", "output": [item], **ended})


@every_wire
async def test_an_answer_in_one_piece_is_read_and_named_when_it_is_cut(place: Place, wire: Dialect) -> None:
    limit = {"chat": "length", "messages": "max_tokens"}.get(wire.wire, "max_output_tokens")
    plays = [whole(wire.wire, "fine"), whole(wire.wire, "half of it", limit), wire.say("done")]
    with wire.server(*plays) as model:
        async with watched_session(place, model, wire_api=wire.wire) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
            failed = await watched.say("go")
            assert isinstance(failed, events.TurnFailed)
            assert "incomplete" in failed.message
            await watched.say("go")
    assert wire.said(model.requests[2]) == ["fine", "half of it"]


@every_wire
async def test_noise_between_the_events_is_passed_over(place: Place, wire: Dialect) -> None:
    noise = [
        raw(b": hello\r\n\r\n"),
        raw(b"event: nonsense\r\nid: 7\r\nretry: 5\r\n\r\n"),
        raw(b"data:\n\n"),
        raw(b"data: [1, 2]\r\n\r\n"),
        raw(b'data: {"type":"telepathy","choices":[]}\n\n'),
        raw(b"data: null\n\n"),
    ]
    answer = [part for element in wire.answer("", [shell("call_1", "echo one")]) for part in (*noise, element)]
    with wire.server([raw(b"\xef\xbb\xbf"), *answer], wire.say("done")) as model:
        async with watched_session(place, model, wire_api=wire.wire) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert watched.of(events.Retrying) == []
    assert wire.outputs(model.requests[1]) == {"call_1": "one"}


@every_wire
async def test_a_huge_event_arrives_whole_and_one_beyond_the_limit_is_an_error(place: Place, wire: Dialect) -> None:
    text = "".join(f"{number:07}\n" for number in range(200_000))
    endless = [raw(b"data: "), *[raw(b"x" * (1 << 24))] * 5]
    with wire.server(wire.say(text), endless, excuse={"replay"} if wire is RESPONSES else None) as model:
        options: dict[str, Any] = {"request_max_retries": 0, "stream_max_retries": 0}
        window = "model_context_window = 10000000"
        async with watched_session(place, model, window, wire_api=wire.wire, ephemeral=True, **options) as watched:
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnCompleted)
            assert ended.last_message == text
            failed = await watched.say("more")
    assert isinstance(failed, events.TurnFailed)
    assert "over 64 MiB" in failed.message

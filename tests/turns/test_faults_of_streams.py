"""What a turn makes of an answer that breaks off, falls silent, fails or is full of noise."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import (
    FakeResponses,
    cut,
    delta,
    error_event,
    failed,
    hang,
    incomplete,
    raw,
    reasoning,
    say,
)
from tests.support.faults import is_back_off, meet, sent_after
from tests.support.home import Place
from tests.support.script import shell
from tests.support.session import Watched, watched_session


@pytest.mark.parametrize(
    "broken",
    [
        [delta("half"), failed(None)],
        [delta("half"), failed("slow_down", "slower")],
        [delta("half"), failed("never_heard_of", "?")],
        [delta("half"), error_event("server_error", "sorry")],
    ],
)
async def test_a_broken_stream_is_asked_for_again_without_its_half_message(place: Place, broken: Any) -> None:
    fault = await meet(place, broken, [say("whole")])
    assert isinstance(fault.ended, events.TurnCompleted)
    assert (fault.requests, fault.sent) == (2, ["assistant: whole", "user: next"])
    assert is_back_off(fault.delays)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("insufficient_quota", "no money"),
        ("usage_not_included", "not in your plan"),
        ("usage_limit_reached", "used up"),
        ("server_is_overloaded", "full"),
        ("invalid_prompt", "odd prompt"),
        ("cyber_policy", "no"),
        ("bio_policy", "no"),
    ],
)
@pytest.mark.parametrize("event", [failed, error_event])
async def test_a_failure_that_will_not_pass_is_final(place: Place, event: Any, code: str, said: str) -> None:
    fault = await meet(place, [say("so far"), event(code, said)])
    assert (fault.requests, fault.message) == (1, f"{said} (`{code}`)")
    assert fault.sent == ["assistant: so far", "user: next"]


async def test_an_answer_that_ran_out_of_tokens_keeps_its_text_and_fails(place: Place) -> None:
    fault = await meet(place, [say("the first half"), incomplete("max_output_tokens")])
    assert (fault.requests, "max_output_tokens" in fault.message) == (1, True)
    assert fault.sent == ["assistant: the first half", "user: next"]


async def test_the_model_is_informed_of_a_content_filter_before_it_is_asked_again(place: Place) -> None:
    fault = await meet(place, [say("half"), incomplete("content_filter")], [say("cannot")])
    assert isinstance(fault.ended, events.TurnCompleted)
    assert fault.sent == [
        "assistant: half",
        "developer: <content_filter_guidance>",
        "assistant: cannot",
        "user: next",
    ]


@pytest.mark.parametrize("breaking", [cut(), failed("server_error", "sorry")])
async def test_what_had_finished_stays_and_what_ran_does_not_run_again(place: Place, breaking: Any) -> None:
    before = [reasoning("blob"), say("looking"), shell("c1", "echo ran >> log; echo hi"), delta("mo"), breaking]
    fault = await meet(place, before, [say("done", id="msg_2")])
    assert isinstance(fault.ended, events.TurnCompleted)
    assert (place.repo / "log").read_text() == "ran\n"
    assert fault.sent == [
        "reasoning rs_1",
        "assistant: looking",
        "function_call c1",
        "output of c1: hi",
        "assistant: done",
        "user: next",
    ]


async def test_a_command_still_running_when_the_stream_breaks_is_waited_for(place: Place) -> None:
    broken = threading.Event()
    with FakeResponses([shell("c1", "read line < gate; echo $line"), hang(broken), cut()], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            gate = Gate(place, watched, broken)
            ended = await watched.say("go")
            gate.close()
    assert isinstance(ended, events.TurnCompleted)
    assert sent_after(model.requests[1], "go") == ["function_call c1", "output of c1: open"]


class Gate:
    """Lets the stream break once the command has begun, and the command end once the break must have been seen."""

    def __init__(self, place: Place, watched: Watched, broken: threading.Event) -> None:
        path = place.repo / "gate"
        os.mkfifo(path)
        self._end = os.open(path, os.O_RDWR | os.O_NONBLOCK)

        def on_begin() -> None:
            broken.set()
            threading.Timer(0.2, os.write, (self._end, b"open\n")).start()

        watched.on(events.CommandStarted, on_begin)
        self.close = lambda: os.close(self._end)


async def test_noise_in_a_stream_is_passed_over(place: Place) -> None:
    noise = [
        raw(b"\xef\xbb\xbf: hello\r\n\r\n"),
        raw(b"event: nonsense\r\ndata: {not json\r\n\r\n"),
        raw(b"retry: 5\r\nid: 7\r\ndata: [1, 2]\r\n\r\n"),
        {"type": "response.telepathy.delta", "delta": "?"},
        raw(b'data: {"type":"response.output_text.delta",\ndata: "delta":"\xff\xfe"}\n\n'),
        raw(b"data: [DONE]\n\n"),
    ]
    fault = await meet(place, [*noise, say("done")])
    assert isinstance(fault.ended, events.TurnCompleted)
    assert (fault.requests, fault.delays, fault.sent) == (1, [], ["assistant: done", "user: next"])

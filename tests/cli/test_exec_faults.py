"""What a script sees of a server that fails: retries as events, one final error, and a session that can go on."""

from __future__ import annotations

from typing import Any

from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    call,
    completed,
    cut,
    delta,
    fake_model,
    reset,
    say,
    status,
    tokens,
)
from tests.support.faults import sent_after
from tests.support.home import Place
from tests.support.process import run

CUT = "the answer was cut off: the server hung up"


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def test_a_retry_is_an_error_event_and_the_turn_succeeds(place: Place) -> None:
    spent = completed(tokens(10, 1))
    with fake_model(place, api_error(503, "busy"), [delta("ha"), cut()], [say("done"), spent]):
        ended = run(place, "exec", "--json", "go")

    assert (ended.status, ended.stderr) == (0, b"")
    assert ended.events[2:] == [
        {"type": "error", "message": "Reconnecting... 1/5 (503 Service Unavailable: busy)"},
        {"type": "error", "message": f"Reconnecting... 2/5 ({CUT})"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "agent_message", "text": "done"}},
        {
            "type": "turn.completed",
            "usage": {
                "input_tokens": 10,
                "cached_input_tokens": 0,
                "cache_write_input_tokens": 0,
                "output_tokens": 1,
                "reasoning_output_tokens": 0,
                "cost_usd": 2.25e-05,
            },
        },
    ]


def test_a_stream_cut_for_ever_ends_with_one_error_and_can_be_resumed(place: Place) -> None:
    shell = call("c1", "exec_command", {"cmd": "echo ran >> log; echo hi", "login": False})
    first = [say("looking"), shell, cut()]
    with FakeResponses(first, [delta("x"), reset()], [cut()], [say("back", id="msg_2")]) as model:
        limits = {"request_max_retries": 2, "stream_max_retries": 2}
        place.use_model(model.base_url, 'sandbox_mode = "danger-full-access"', **limits)
        ended = run(place, "exec", "--json", "go")
        sent = len(model.requests)
        again = run(place, "exec", "resume", "--last", "next")

    assert (ended.status, sent) == (68, 3)
    assert kinds(ended.events)[-4:] == ["error", "error", "error", "turn.failed"]
    assert [event["message"].partition(" (")[0] for event in ended.events[-4:-2]] == [
        "Reconnecting... 1/2",
        "Reconnecting... 2/2",
    ]
    assert ended.events[-2]["message"] == ended.events[-1]["error"]["message"]
    assert (place.repo / "log").read_text() == "ran\n"
    assert (again.status, again.stdout) == (0, b"back\n")
    assert sent_after(model.requests[-1], "go") == [
        "assistant: looking",
        "function_call c1",
        "output of c1: hi",
        "user: next",
    ]


def test_for_a_person_each_retry_is_a_line_and_the_final_error_is_said_once(place: Place) -> None:
    boom = status(500, {"error": {"message": "boom\x1b[31m"}}, {"x-request-id": "req_1"})
    with fake_model(place, boom, boom, request_max_retries=1, stream_max_retries=1):
        ended = run(place, "exec", "go")

    said = "500 Internal Server Error: boom [31m (request id: req_1)"
    assert (ended.status, ended.stdout) == (69, b"")
    assert [line for line in ended.err.splitlines() if line.startswith("ERROR:")] == [
        f"ERROR: Reconnecting... 1/1 ({said})",
        f"ERROR: {said}",
    ]

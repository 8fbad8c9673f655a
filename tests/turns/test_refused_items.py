"""Items that a server refuses: each is sent as plain text from then on, one line says so, and a resumed session too."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Request, api_error, call, repeat, say
from tests.support.home import Place
from tests.support.script import Answer, status
from tests.support.session import scripted_session, watched_session
from tests.support.wire_dialects import CHAT, MESSAGES, Dialect, shell

OTHER = ("model=some-model",)
FOREIGN = {"type": "mcp_call", "id": "mcp_1", "server_label": "wiki", "output": "the wiki says 42", "approval": None}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "I think of 42"}],
}
PRINT = call("c1", "exec_command", {"cmd": "printf %s printed", "login": False})
ODD = {**say("said 42")["item"], "channel": "final"}

ROWS: list[tuple[list[Any], str, str, str, str]] = [
    # Items of an answer, how the server counts the refused one, its words, what is not sent again, and what still is.
    # querymt/querymt#976
    (
        [THOUGHT, say("one")],
        "reasoning",
        "Invalid 'input[{}].content': array too long. Expected an array with maximum length 0",
        '"type": "reasoning"',
        "I think of 42",
    ),
    ([THOUGHT, say("one")], "reasoning", "Unknown parameter: 'input[{}].content'.", '"reasoning_text"', "of 42"),
    # AnswerDotAI/fastllm#45
    (
        [PRINT],
        "function_call",
        "Invalid 'input[{}].call_id': string too long. Expected a string with maximum length 64",
        '"type": "function_call"',
        "printf %s printed",
    ),
    # A server that makes ids longer than the API takes them, which are sent shortened
    (
        [call("call_" + "x" * 80, "exec_command", {"cmd": "printf %s printed", "login": False})],
        "function_call",
        "Invalid 'input[{}].name': string does not match pattern",
        '"call_id"',
        "printf %s printed",
    ),
    # vllm-project/vllm: arguments are read as JSON
    (
        [call("c1", "exec_command", "{cmd: ls")],
        "function_call",
        "input[{}].arguments: not JSON",
        '"call_id"',
        "{cmd: ls",
    ),
    (
        [call("c1", "exec_command", "{cmd: ls")],
        "function_call",
        "input.{}.arguments: Expecting value",
        '"call_id"',
        "cmd",
    ),
    # VectorlyApp/bluebox#31
    (
        [PRINT],
        "function_call_output",
        "Invalid 'input[{}].output': string too long. Expected a string with maximum length 10485760",
        '"function_call_output"',
        "printed",
    ),
    # Items of another server, and of its tools
    ([FOREIGN, say("one")], "mcp_call", "Unknown parameter: 'input[{}].approval'.", '"mcp_call"', "the wiki says 42"),
    ([FOREIGN, say("one")], "mcp_call", "Invalid value: 'mcp_call' at input[{}].type", '"server_label": "', "says 42"),
    ([ODD], "said", "input[{}]: unknown field `channel`", '"channel"', "said 42"),
    ([ODD], "said", "Input validation error: input.{}.channel extra fields not permitted", '"channel"', "said 42"),
]


def place_of(request: Request, kind: str) -> int | None:
    kinds = [("said" if "channel" in item else item["type"]) for item in request.input]
    return kinds.index(kind) if kind in kinds else None


def server(parts: list[Any], kind: str, words: str) -> FakeResponses:
    """It answers first with these items, and refuses each request that has the item as the API would."""
    first = [part if "item" in part else {"type": "response.output_item.done", "item": part} for part in parts]

    def play(request: Request) -> Any:
        if (index := place_of(request, kind)) is not None:
            return api_error(400, words.format(index), kind="invalid_request_error")
        return first if len(model.requests) == 1 else [say("done")]

    model = FakeResponses(repeat(play), excuse={"prefix", "replay"})
    return model


@pytest.mark.parametrize(("parts", "kind", "words", "gone", "kept"), ROWS)
async def test_it_is_sent_as_plain_text(
    place: Place, parts: list[Any], kind: str, words: str, gone: str, kept: str
) -> None:
    with server(parts, kind, words) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    sent = json.dumps(model.requests[-1].input)
    assert (gone in sent, kept in sent) == (False, True)
    assert len([event for event in watched.of(events.Warned) if "as plain text" in event.message]) == 1
    # A resumed session has the new history.
    with FakeResponses([say("three")]) as model:
        async with watched_session(place, model, overrides=OTHER, resume=watched.session.thread_id) as watched:
            ended = await watched.say("third")
    assert isinstance(ended, events.TurnCompleted)
    sent = json.dumps(model.requests[0].input)
    assert (gone in sent, kept in sent) == (False, True)


async def test_items_of_one_form_are_replaced_at_once(place: Place) -> None:
    def play(request: Request) -> Any:
        if (index := place_of(request, "reasoning")) is not None and len(model.requests) > 3:
            return api_error(400, f"Invalid 'input[{index}].content': array too long. Expected maximum length 0")
        thought = {**THOUGHT, "id": f"rs_{len(model.requests)}"}
        return [{"type": "response.output_item.done", "item": thought}, say("done")]

    async with scripted_session(place, repeat(play), excuse={"prefix", "replay"}, overrides=OTHER) as (model, watched):
        for text in ("first", "second", "third", "fourth"):
            ended = await watched.say(text)
    assert isinstance(ended, events.TurnCompleted)
    # The refused request, and the one with three texts.
    assert len(model.requests) == 5
    assert json.dumps(model.requests[-1].input).count("I think of 42") == 3
    assert len([event for event in watched.of(events.Warned) if "as plain text" in event.message]) == 1


async def test_a_text_over_a_limit_is_cut_to_it(place: Place) -> None:
    refusal = "Invalid 'input[{}].output': string too long. Expected a string with maximum length 2000"
    long = call(
        "c1", "exec_command", {"cmd": "printf start; head -c 9000 /dev/zero | tr '\\0' x; printf end", "login": False}
    )
    with server([long], "function_call_output", refusal) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    [text] = [text for text in model.requests[-1].texts("developer") if "output of that call" in text]
    assert (len(text) <= 2000, text.endswith("xend")) == (True, True)


@pytest.mark.parametrize(
    ("wire", "words", "gone"),
    [
        # gptscript-ai/clio#41
        (
            CHAT,
            "Invalid 'messages[{}].content': string too long. Expected a string with maximum length 1048576",
            '"tool"',
        ),
        (CHAT, "messages[{}]: tool message content: unsupported characters", '"tool"'),
        (MESSAGES, "messages.{}.content.0.tool_result.content: string contains a character", '"tool_result"'),
    ],
)
async def test_the_other_apis_name_messages(place: Place, wire: Dialect, words: str, gone: str) -> None:
    def refuses(request: Request) -> Any:
        return api_error(400, words.format(len(request.body["messages"]) - 1), kind="invalid_request_error")

    def done(_: Request) -> Any:
        return wire.say("done")

    script = [wire.answer("", [shell("c1", "printf %s printed")]), refuses, done, done]
    with wire.server(*script, excuse={"chat", "messages", "prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OTHER, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
            await watched.say("on")
    assert isinstance(ended, events.TurnCompleted)
    sent = json.dumps(model.requests[-1].body["messages"])
    assert (f'"role": {gone}' in sent or f'"type": {gone}' in sent, "printed" in sent) == (False, True)


async def test_a_plain_text_that_is_refused_too_ends_the_turn(place: Place) -> None:
    def refuses(request: Request) -> Answer:
        return api_error(400, f"input[{len(request.input) - 1}]: no such words")

    with FakeResponses([say("one")], repeat(refuses), excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnFailed)
    assert "no such words" in ended.message
    assert len(model.requests) <= 3


async def test_the_place_may_stand_in_a_field_of_the_error(place: Place) -> None:
    body = {"error": {"message": "Unknown parameter.", "param": "input[{}].approval", "code": "unknown_parameter"}}

    def refuses(request: Request) -> Answer:
        return status(400, json.dumps(body).replace("{}", str(place_of(request, "mcp_call"))))

    first = [{"type": "response.output_item.done", "item": FOREIGN}, say("one")]
    with FakeResponses(first, refuses, [say("two")], excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OTHER) as watched:
            await watched.say("first")
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)

"""Turns over the Chat Completions API, with a server that refuses what is not in the API."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact, TextInput, UserTurn
from tests.support.fake_chat import Dialect, FakeChat, answer, whole
from tests.support.fake_responses import hang, raw, reset, status
from tests.support.home import Place
from tests.support.session import Watched, watched_session

MODEL = "some-model"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c636060606000000005000157"
    "bfab0d0a0000000049454e44ae426082"
)


@asynccontextmanager
async def chat_session(
    place: Place, model: FakeChat, *, name: str = MODEL, settings: tuple[str, ...] = (), **options: Any
) -> AsyncGenerator[Watched, None]:
    overrides = (f'model="{name}"', *settings)
    async with watched_session(place, model, overrides=overrides, wire_api="chat", **options) as watched:
        yield watched


def shell(call_id: str, command: str) -> tuple[str, str, dict[str, Any]]:
    return call_id, "exec_command", {"cmd": command, "login": False}


def outputs(body: dict[str, Any]) -> dict[str, str]:
    tools = [message for message in body["messages"] if message["role"] == "tool"]
    return {message["tool_call_id"]: message["content"].rpartition("Output:\n")[2].strip() for message in tools}


def roles(body: dict[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


async def test_parallel_calls_and_their_outputs(place: Place) -> None:
    first = answer("I look.", calls=[shell("a", "echo one"), shell("b", "echo two")], reasoning="two at once")
    with FakeChat(first, answer("done", prompt_tokens=40), answer("bye")) as model:
        async with chat_session(place, model) as watched:
            assert await watched.say("go") == watched.of(events.TurnCompleted)[0]
            await watched.say("again")
    assert outputs(model.bodies[1]) == {"a": "one", "b": "two"}
    assert roles(model.bodies[1])[-4:] == ["user", "assistant", "tool", "tool"]
    assert model.bodies[1]["messages"][-3]["content"] == "I look."
    assert model.bodies[1]["messages"][-3]["reasoning_content"] == "two at once"
    assert model.bodies[0]["messages"][-1] == {"role": "user", "content": "go"}
    assert roles(model.bodies[2])[-2:] == ["assistant", "user"]
    assert model.requests[0].path.endswith("/v1/chat/completions")
    assert model.bodies[0]["stream_options"] == {"include_usage": True}
    assert [event.text for event in watched.of(events.MessageDone)] == ["I look.", "done", "bye"]
    assert "".join(event.text for event in watched.of(events.ReasoningDelta)) == "two at once"


async def test_a_patch_is_a_function_call(place: Place) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch"
    with FakeChat(answer(calls=[("p", "apply_patch", {"input": patch})]), answer("done")) as model:
        # A model that is sent a grammar where the server takes one.
        async with chat_session(place, model, name="gpt-5.1-codex") as watched:
            await watched.say("go")
    [tool] = [tool for tool in model.bodies[0]["tools"] if tool["function"]["name"] == "apply_patch"]
    assert list(tool["function"]["parameters"]["properties"]) == ["input"]
    assert (place.repo / "new.txt").read_text() == "hello\n"
    assert "Begin Patch" in tool["function"]["description"]


async def test_a_patch_that_does_not_fit_changes_nothing(place: Place) -> None:
    patch = "*** Begin Patch\n*** Update File: README.md\n@@\n-not there\n+x\n*** End Patch"
    before = (place.repo / "README.md").read_bytes()
    with FakeChat(answer(calls=[("p", "apply_patch", {"input": patch})]), answer("done")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
    assert "verification failed" in outputs(model.bodies[1])["p"]
    assert (place.repo / "README.md").read_bytes() == before


async def test_the_picture_of_a_tool_follows_its_outputs(place: Place) -> None:
    place.write("dot.png", PNG)
    calls = [("v", "view_image", {"path": "dot.png"}), shell("a", "echo one")]
    with FakeChat(answer(calls=calls), answer("done"), answer("more")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            await watched.say("and now?")
    assert roles(model.bodies[1])[-4:] == ["assistant", "tool", "tool", "user"]
    picture = model.bodies[1]["messages"][-1]["content"][-1]
    assert picture["image_url"]["url"].startswith("data:image/png;base64,")
    assert roles(model.bodies[2])[-3:] == ["user", "assistant", "user"]


async def test_a_server_that_asks_for_its_reasoning_gets_it_and_no_other_does(place: Place) -> None:
    dialect = Dialect(message_fields=frozenset({"reasoning_content"}), needs_reasoning=True)
    script = [
        answer(calls=[shell("a", "echo one")], reasoning="first"),
        answer(calls=[shell("b", "echo two")], reasoning="second"),
        answer("done"),
        answer("other"),
    ]
    with FakeChat(*script, dialect=dialect, excuse={"chat"}) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            thread = watched.session.thread_id
        async with chat_session(place, model, name="other-model", resume=thread) as watched:
            await watched.say("again")
    # Refused once, for the first request that lacked it, and never again.
    assert model.refused == ["The `reasoning_content` in the thinking mode must be passed back to the API."] + [
        "The `reasoning_content` in the thinking mode must be passed back to the API."
    ] * (len(model.refused) - 1)
    replayed = [message.get("reasoning_content") for message in model.bodies[2]["messages"] if "tool_calls" in message]
    assert replayed == ["first", "second"]
    other = [message.get("reasoning_content") for message in model.bodies[3]["messages"] if "tool_calls" in message]
    assert other == ["", ""]


async def test_a_server_where_roles_alternate_gets_them_so(place: Place) -> None:
    dialect = Dialect(alternates=True)
    script = [answer(calls=[shell("a", "echo one")]), answer("done"), answer("more")]
    with FakeChat(*script, dialect=dialect, excuse={"chat"}) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            await watched.say("again")
    assert roles(model.bodies[0]) == ["system", "user"]
    assert roles(model.bodies[2]) == ["system", "user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    "refusal",
    [
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"], "msg": "Extra inputs"}]},
        {"message": {"detail": [{"loc": ["body", "stream_options", "include_usage"], "msg": "Extra inputs"}]}},
        {"error": {"message": "Unknown parameter: 'stream_options'."}},
    ],
)
async def test_a_field_that_is_refused_is_left_out_from_then_on(place: Place, refusal: dict[str, Any]) -> None:
    with FakeChat(status(422, refusal), answer("one"), answer("two")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            await watched.say("again")
    assert ["stream_options" in body for body in model.bodies] == [True, False, False]
    assert watched.of(events.Retrying) == []


@pytest.mark.parametrize(
    "refusal",
    [
        status(500, {"error": {"code": 500, "message": "Cannot use tools with stream", "type": "server_error"}}),
        status(400, {"error": {"message": "Streaming is not supported by this server"}}),
    ],
    ids=["calls", "anything"],
)
async def test_a_server_that_cannot_stream_is_asked_without(place: Place, refusal: Any) -> None:
    with FakeChat(refusal, whole(calls=[shell("a", "echo one")]), whole("done")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
    assert [body["stream"] for body in model.bodies] == [True, False, False]
    assert "stream_options" not in model.bodies[1]
    assert outputs(model.bodies[2]) == {"a": "one"}
    assert watched.of(events.MessageDone)[-1].text == "done"


async def test_a_server_that_streams_for_nobody_is_read_all_the_same(place: Place) -> None:
    with FakeChat(whole(calls=[shell("a", "echo one")]), whole("done")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
    assert outputs(model.bodies[1]) == {"a": "one"}


async def test_the_schema_of_the_answer(place: Place) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    refusal = status(400, {"error": {"message": "response_format json_schema is not supported"}})
    with FakeChat(refusal, answer('{"x":1}'), answer('{"x":2}')) as model:
        async with chat_session(place, model) as watched:
            for text in ("go", "on"):
                await watched.session.submit(UserTurn((TextInput(text),), output_schema=schema))
    assert model.bodies[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "codex_output_schema",
            "strict": True,
            "schema": schema | {"additionalProperties": False},
        },
    }
    assert "response_format" not in model.bodies[1]
    assert json.dumps(schema, separators=(",", ":")) in model.bodies[1]["messages"][0]["content"]


async def test_a_summary_makes_room(place: Place) -> None:
    def summary(request: Any) -> Any:
        model.forget_prefix()
        assert request.body["tools"] == model.bodies[0]["tools"]
        return answer("what was done")

    with FakeChat(answer("one", reasoning="hm"), summary, answer("two")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            await watched.session.submit(Compact())
            await watched.say("again")
    assert "what was done" in json.dumps(model.bodies[2]["messages"])
    assert watched.of(events.TurnFailed) == []


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (status(200, {"ok": True}), "Chat Completions API"),
        (status(404), "Chat Completions API"),
        (status(400, b'[{"error": {"message": "odd tool", "code": 400}}]'), "odd tool"),
        ([raw(b'data: {"error":{"message":"no credit","code":402}}\n\n')], "no credit"),
    ],
)
async def test_what_will_not_pass_is_final_at_once(place: Place, refusal: Any, words: str) -> None:
    with FakeChat(refusal) as model:
        async with chat_session(place, model) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert words in ended.message
    assert len(model.requests) == 1


async def test_a_connection_that_breaks_behind_the_end_costs_nothing(place: Place) -> None:
    first = [*answer(calls=[shell("a", "echo one")])[:-2], reset()]
    with FakeChat(first, [*answer("done")[:-2], hang(60.0)]) as model:
        async with chat_session(place, model, stream_idle_timeout_ms=300) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert watched.of(events.Retrying) == []
    assert outputs(model.bodies[1]) == {"a": "one"}


async def test_a_conversation_that_is_too_long_is_summed_up(place: Place) -> None:
    refusal = status(400, {"error": {"message": "This model's maximum context length is 8192 tokens."}})

    def summary(_: Any) -> Any:
        model.forget_prefix()
        return answer("what was done")

    with FakeChat(answer("one"), refusal, summary, answer("two")) as model:
        async with chat_session(place, model) as watched:
            await watched.say("go")
            assert isinstance(await watched.say("again"), events.TurnCompleted)

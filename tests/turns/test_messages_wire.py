"""Turns over the Messages API, with a server that refuses whatever the real one refuses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.fake_messages import FakeMessages, answer, api_refusal, blocks_of, redacts, says, thinks, uses
from tests.support.fake_responses import call, raw, reasoning, say, status
from tests.support.home import Place
from tests.support.session import Watched, scripted_session, watched_session

MODEL = "claude-opus-5-5"


@asynccontextmanager
async def messages_session(
    place: Place, model: FakeMessages, *, name: str = MODEL, effort: str = "", **options: Any
) -> AsyncGenerator[Watched, None]:
    overrides = (f'model="{name}"', *((f'model_reasoning_effort="{effort}"',) if effort else ()))
    async with watched_session(place, model, overrides=overrides, wire_api="messages", **options) as watched:
        yield watched


def shell(call_id: str, command: str) -> Any:
    return uses(call_id, "exec_command", {"cmd": command, "login": False})


def results(body: dict[str, Any]) -> dict[str, str]:
    found = [block for block in blocks_of(body, "user") if block["type"] == "tool_result"]
    return {one["tool_use_id"]: str(one.get("content", "")).rpartition("Output:\n")[2].strip() for one in found}


async def test_thinking_and_parallel_calls_go_back_as_they_came(place: Place) -> None:
    first = answer(thinks("two at once"), shell("toolu_1", "echo one"), redacts("sealed"), shell("toolu_2", "echo two"))
    with FakeMessages(first, answer(says("done")), answer(says("bye"))) as model:
        async with messages_session(place, model) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
            assert isinstance(await watched.say("again"), events.TurnCompleted)
    assistant = model.bodies[1]["messages"][1]
    assert [block["type"] for block in assistant["content"]] == [
        "thinking",
        "tool_use",
        "redacted_thinking",
        "tool_use",
    ]
    assert results(model.bodies[1]) == {"toolu_1": "one", "toolu_2": "two"}
    assert [message["role"] for message in model.bodies[2]["messages"]] == ["user", "assistant"] * 2 + ["user"]


@pytest.mark.parametrize("error_type", ["invalid_request_error", "authentication_error", "billing_error"])
async def test_an_error_that_will_not_pass_is_final(place: Place, error_type: str) -> None:
    event = {"type": "error", "error": {"type": error_type, "message": "no"}, "request_id": "req_7"}
    with FakeMessages([*answer(says("half"))[:3], event]) as model:
        async with messages_session(place, model) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert ended.message == f"no (`{error_type}`) (request id: req_7)"


async def test_a_paused_answer_goes_on(place: Place) -> None:
    with FakeMessages(answer(says("looking"), stop="pause_turn"), answer(says("done"))) as model:
        async with messages_session(place, model) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert [message["role"] for message in model.bodies[1]["messages"]] == ["user", "assistant", "user"]


@pytest.mark.parametrize("paused", [[says("looking")], [thinks("hm"), says("looking")], [thinks("hm")], []])
async def test_a_paused_answer_is_sent_the_same_way_by_a_resumed_session(place: Place, paused: list[Any]) -> None:
    # The fake server complains about a request that does not extend the one before.
    plays = [answer(*paused, stop="pause_turn"), answer(says("done")), answer(says("more"))]
    with FakeMessages(*plays) as model:
        async with messages_session(place, model) as watched:
            await watched.say("go")
            thread = watched.session.thread_id
        async with messages_session(place, model, resume=thread) as watched:
            assert isinstance(await watched.say("again"), events.TurnCompleted)
    async with scripted_session(place, [say("fine")], resume=thread) as (other, watched):
        assert isinstance(await watched.say("last"), events.TurnCompleted)
    assert other.requests[0].texts("user")[-1] == "last"


@pytest.mark.parametrize(
    ("stop", "details", "message"),
    [
        ("max_tokens", None, "the answer is incomplete"),
        ("refusal", {"category": "cyber", "explanation": "no exploits"}, "has refused to answer: cyber: no exploits"),
        ("refusal", None, "the model has refused to answer"),
    ],
)
async def test_an_answer_cut_short_keeps_its_text_says_why_and_runs_no_half_call(
    place: Place, stop: str, details: Any, message: str
) -> None:
    half = answer(
        says("the first half"), uses("toolu_1", "exec_command", '{"cmd": "echo no > log'), stop=stop, details=details
    )
    empty = answer(uses("toolu_2", "exec_command", ""), stop=stop, details=details)
    with FakeMessages(half, empty, answer(says("fine"))) as model:
        async with messages_session(place, model) as watched:
            ended = [await watched.say("go"), await watched.say("more")]
            await watched.say("next")
    assert all(isinstance(event, events.TurnFailed) and message in event.message for event in ended)
    assert not (place.repo / "log").exists()
    said = [block for block in blocks_of(model.bodies[-1], "assistant")]
    assert [block.get("text") for block in said] == ["the first half"]


async def test_a_full_context_window_is_compacted_and_asked_again(place: Place) -> None:
    def after(play: Any) -> Any:
        def answered(_: Any) -> Any:
            model.forget_prefix()
            return play

        return answered

    full = answer(says("half"), stop="model_context_window_exceeded")
    too_long = api_refusal(400, "invalid_request_error", "prompt is too long: 200001 tokens > 200000 maximum")
    summary = answer(says("the summary"))
    with FakeMessages(
        answer(says("hello")), full, after(summary), answer(says("done")), too_long, after(summary), answer(says("ok"))
    ) as model:
        async with messages_session(place, model) as watched:
            await watched.say("hi")
            assert isinstance(await watched.say("go"), events.TurnCompleted)
            assert isinstance(await watched.say("on"), events.TurnCompleted)
    assert [event.how for event in watched.of(events.ContextCompacted)] == ["local", "local"]


async def test_cached_tokens_are_shown_and_part_of_the_input(place: Place) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}
    with FakeMessages(answer(says("hi"), usage=usage)) as model:
        async with messages_session(place, model) as watched:
            await watched.say("go")
    [reported] = watched.of(events.UsageReported)
    last = reported.total
    assert (last.input_tokens, last.cached_input_tokens, last.cache_write_input_tokens, last.output_tokens) == (
        100,
        70,
        20,
        5,
    )


async def test_marks_of_the_cache_stand_on_the_last_request_and_on_this_one(place: Place) -> None:
    plays = [answer(shell(f"toolu_{n}", f"echo {n}")) for n in range(3)]
    with FakeMessages(*plays, answer(says("done"))) as model:
        async with messages_session(place, model) as watched:
            await watched.say("go")
    marked = [
        [at for at, message in enumerate(body["messages"]) for block in message["content"] if "cache_control" in block]
        for body in model.bodies
    ]
    assert marked == [[0], [0, 2], [2, 4], [4, 6]]
    assert all("cache_control" in body["system"][-1] for body in model.bodies)


async def test_a_session_goes_from_one_api_to_another_and_back(place: Place) -> None:
    sealed = reasoning("sealed", "first thoughts")
    async with scripted_session(
        place, [sealed, call("call/1", "exec_command", {"cmd": "echo one", "login": False})], [say("one")]
    ) as (_, watched):
        await watched.say("first")
        thread = watched.session.thread_id
    plays = [answer(thinks("second thoughts"), shell("toolu_2", "echo two")), answer(says("two")), answer(says("more"))]
    with FakeMessages(*plays) as second:
        async with messages_session(place, second, resume=thread) as watched:
            assert isinstance(await watched.say("second"), events.TurnCompleted)
            assert isinstance(await watched.say("more"), events.TurnCompleted)
    async with scripted_session(place, [say("three")], resume=thread) as (third, watched):
        assert isinstance(await watched.say("third"), events.TurnCompleted)
    assert "one" in results(second.bodies[0]).values()
    assert [block["type"] for block in blocks_of(second.bodies[0], "assistant")] == ["tool_use", "text"]
    assert b"second thoughts" not in third.requests[0].raw
    assert b"made_by" not in third.requests[0].raw
    assert third.requests[0].output_of("toolu_2").rpartition("Output:\n")[2].strip() == "two"
    kinds = [one["type"] for one in third.requests[0].input if one["type"] != "message"]
    assert kinds == ["reasoning", "function_call", "function_call_output", "function_call", "function_call_output"]


async def test_keys_are_sent_in_their_own_headers(place: Place) -> None:
    with FakeMessages(answer(says("hi")), key="secret-key") as model:
        async with messages_session(place.with_env(MY_KEY="secret-key"), model, env_key="MY_KEY") as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    with FakeMessages(answer(says("hi")), bearer="a-token") as model:
        async with messages_session(place, model, experimental_bearer_token="a-token") as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)


async def test_thinking_that_the_server_does_not_take_back_is_left_out_and_the_turn_goes_on(place: Place) -> None:
    refusal = api_refusal(400, "invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")
    first = answer(thinks("hm"), shell("toolu_1", "echo one"))
    with FakeMessages(first, refusal, answer(says("done")), excuse={"messages"}) as model:
        async with messages_session(place, model) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert not any(block["type"] == "thinking" for block in blocks_of(model.bodies[-1], "assistant"))


async def test_the_context_is_counted_by_the_provider_and_that_changes_no_request(place: Place) -> None:
    plays = [answer(thinks("hm"), shell("toolu_1", "echo one")), answer(says("done")), answer(says("bye"))]
    with FakeMessages(*plays, tokens=4321) as model:
        async with messages_session(place, model, effort="high") as watched:
            await watched.say("go")
            use = await watched.session.count_context()
            await watched.say("again")
    assert (use.total, use.measured) == (4321, True)
    assert sum(section.tokens for section in use.sections) == 4321
    assert len(model.counted) == 1


async def test_a_server_that_does_not_count_is_not_needed_for_the_context(place: Place) -> None:
    with FakeMessages(answer(says("done")), tokens=0) as model:
        async with messages_session(place, model) as watched:
            await watched.say("go")
            use = await watched.session.count_context()
    assert use == watched.session.context_use()


async def test_a_call_that_fails_is_marked_and_other_apis_are_not_sent_the_mark(place: Place) -> None:
    first = answer(
        uses("toolu_1", "apply_patch", {"input": "no patch"}),
        uses("toolu_2", "no_such_tool", {}),
        shell("toolu_3", "echo fine"),
    )
    with FakeMessages(first, answer(says("done"))) as model:
        async with messages_session(place, model) as watched:
            await watched.say("go")
            thread = watched.session.thread_id
    marks = {one["tool_use_id"]: one.get("is_error") for one in model.bodies[1]["messages"][2]["content"]}
    assert marks == {"toolu_1": True, "toolu_2": True, "toolu_3": None}
    async with scripted_session(place, [say("ok")], resume=thread) as (other, watched):
        await watched.say("go")
    assert b"is_error" not in other.requests[0].raw


@pytest.mark.parametrize(
    ("play", "message"),
    [
        (
            status(200, "<html><title>Login</title>"),
            "an HTML page titled “Login”; does `base_url` name a server of the Messages",
        ),
        (status(404, "not found"), "does `base_url` name a server of the Messages API?"),
        (status(200, {"type": "error", "error": {"type": "invalid_request_error", "message": "bad"}}), "bad"),
        (api_refusal(403, "permission_error", "not yours"), "403 Forbidden: not yours"),
    ],
)
async def test_an_answer_that_is_none_is_named(place: Place, play: Any, message: str) -> None:
    with FakeMessages(play) as model:
        async with messages_session(place, model) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert message in ended.message


async def test_noise_of_every_kind_is_passed_over(place: Place) -> None:
    noise = [
        raw(b"data: {\n\n"),
        raw(b"data: []\n\n"),
        raw(b": hi\n\n"),
        {"type": "new_event", "x": 1},
        {"type": "ping"},
    ]
    odd = [{"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "lost"}}]
    events_ = answer(
        ({"type": "server_tool_use", "id": "s", "name": "x", "input": {}}, []), says("heard"), stop="new_stop"
    )
    mixed = [part for event in events_ for part in (event, *noise, *odd)]
    with FakeMessages(mixed) as model:
        async with messages_session(place, model) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert [event.text for event in watched.of(events.MessageDone)] == ["heard"]
    assert any("new_stop" in event.message for event in watched.of(events.Warned))


@pytest.mark.parametrize(
    "refusal",
    [
        api_refusal(413, "request_too_large", "Request exceeds the maximum size"),
        [*answer(says("x"))[:2], {"type": "error", "error": {"type": "request_too_large", "message": "too large"}}],
    ],
)
async def test_a_request_that_is_too_large_is_compacted(place: Place, refusal: Any) -> None:
    def summary(_: Any) -> Any:
        model.forget_prefix()
        return answer(says("the summary"))

    with FakeMessages(answer(says("hello")), refusal, summary, answer(says("done"))) as model:
        async with messages_session(place, model) as watched:
            await watched.say("hi")
            assert isinstance(await watched.say("go"), events.TurnCompleted)
    assert len(watched.of(events.ContextCompacted)) == 1

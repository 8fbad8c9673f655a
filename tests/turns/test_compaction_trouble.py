"""Compactions that meet with trouble: what a turn, the user's words and the next request come to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from tests.support.fake_responses import (
    FakeResponses,
    Request,
    Stream,
    api_error,
    call,
    completed,
    failed,
    hang,
    incomplete,
    item,
    reasoning,
    repeat,
    say,
    status,
    tokens,
)
from tests.support.home import Place
from tests.support.script import Answer, shell
from tests.support.session import scripted_session, watched_session

FULL = completed(tokens(300_000, 10))
COMPACTION = {"type": "compaction", "encrypted_content": "SEALED"}


def model_with_window(request: Request) -> Stream | Answer:
    """A model that reads 11,000 tokens, whatever is known about it, and runs a command when it is told to."""
    if len(request.raw) > 44_000:
        return api_error(400, "too long", kind="context_length_exceeded")
    if request.compacts:
        return [say("the summary")]
    if "run it" in request.texts("user")[-1]:
        return [shell("c1", "head -c 90000 /dev/zero | tr '\\0' x")]
    return [say("done")]


async def test_what_the_user_said_is_kept_when_the_compaction_before_it_is_interrupted(place: Place) -> None:
    release = threading.Event()
    with FakeResponses([say("one"), FULL], [hang(release)], [say("sum")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            turn = asyncio.create_task(watched.say("second"))
            await asyncio.to_thread(model.wait_for, 2)
            watched.session.interrupt()
            assert isinstance(await turn, events.TurnInterrupted)
            await watched.say("third")
    assert model.requests[2].compacts
    assert model.requests[2].texts("user")[-3] == "second"
    assert [text for text in model.requests[3].texts("user") if "<" not in text] == ["first", "second", "third"]


async def test_what_the_user_said_is_kept_when_the_compaction_before_it_fails(place: Place) -> None:
    with FakeResponses([say("one"), FULL], api_error(401, "no"), [say("sum")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            assert isinstance(await watched.say("second"), events.TurnFailed)
            await watched.say("third")
    assert [text for text in model.requests[3].texts("user") if "<" not in text] == ["first", "second", "third"]


async def test_a_session_goes_on_after_a_prompt_that_was_too_long_by_itself(place: Place) -> None:
    with FakeResponses(repeat(model_with_window)) as model:
        async with watched_session(place, model, "model_context_window = 11000") as watched:
            refused = await watched.say("begin " + "word " * 20_000 + "end")
            ended = await watched.say("short")
    assert isinstance(refused, events.TurnFailed)
    assert isinstance(ended, events.TurnCompleted)
    [summed_up] = [request for request in model.requests if request.compacts and len(request.raw) <= 44_000]
    cut = summed_up.texts("user")[-2]
    assert (cut[:10], cut[-8:], "tokens truncated" in cut) == ("begin word", "word end", True)


async def test_an_output_that_is_too_long_by_itself_is_summed_up_from_its_ends(place: Place) -> None:
    async with scripted_session(place, repeat(model_with_window)) as (model, watched):
        ended = await watched.say("run it")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "done"
    summed_up = model.requests[-2]
    assert summed_up.compacts
    assert "tokens truncated" in summed_up.output_of("c1")
    assert model.requests[-1].texts("user")[-1].startswith("<conversation_summary>")
    [warning] = [event for event in watched.warnings if "too long to be summed up" in event]
    assert warning.endswith("its texts were cut")


async def test_a_history_that_no_request_can_hold_is_one_error(place: Place) -> None:
    refusal = api_error(400, "too long", kind="context_length_exceeded")
    async with scripted_session(place, [say("one"), FULL], repeat(refusal)) as (model, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert isinstance(ended, events.TurnFailed)
    assert ended.message.endswith(", even compacted: 400 Bad Request: too long")
    assert len([request for request in model.requests if request.compacts]) <= 8
    assert len(model.requests) < 15


@pytest.mark.parametrize(
    "extra",
    [
        {"type": "function_call", "call_id": "q", "name": "exec_command", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "q", "output": "x"},
    ],
)
async def test_half_an_exchange_in_what_a_provider_compacted_is_left_out(place: Place, extra: dict[str, Any]) -> None:
    output = status(200, {"output": [COMPACTION, extra]})
    async with scripted_session(place, [say("one")], output, [say("two")], compaction="remote") as (model, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        await watched.say("second")
    assert [one["type"] for one in model.requests[2].input[-2:]] == ["compaction", "message"]


async def test_two_compactions_in_a_row_leave_one_summary(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("sum 1")], [say("sum 2")], [say("two")]) as (model, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        await watched.session.submit(Compact())
        await watched.say("second")
    *_, first, summary, second = model.requests[3].texts("user")
    assert (first, "sum 2" in summary, "sum 1" in summary, second) == ("first", True, False, "second")
    assert model.requests[3].window == 2


async def test_a_skill_that_an_earlier_run_read_by_the_way_is_named(place: Place) -> None:
    skill = place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: lints\n---\nRun it.\n")
    with FakeResponses([shell("c1", "cat .agents/skills/lint/SKILL.md")], [say("one")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
    with FakeResponses([say("sum")], [say("two")]) as model:
        async with watched_session(place, model, resume=watched.session.thread_id) as watched:
            await watched.session.submit(Compact())
            await watched.say("second")
    assert f"- `lint`: `{skill}`\n" in model.requests[1].texts("developer")[-1]


async def test_an_output_that_fills_a_compacted_history_again_is_no_fault_of_the_compaction(place: Place) -> None:
    counted = completed(tokens(5_000, 10))
    work = [shell("c2", "head -c 30000 /dev/zero | tr '\\0' x"), counted]
    with FakeResponses([shell("c1", "true"), FULL], [say("sum 1")], work, [say("sum 2")], [say("done")]) as model:
        async with watched_session(place, model, "model_auto_compact_token_limit = 8000") as watched:
            ended = await watched.say("first")
    assert [request.compacts for request in model.requests] == [False, True, False, True, False]
    assert watched.of(events.Warned) == []
    assert isinstance(ended, events.TurnCompleted)


REFUSAL = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}
NO_SUMMARIES: dict[str, list[Any] | Answer] = {
    "nothing": [completed()],
    "empty": [say("")],
    "blanks": [say(" \n ")],
    "refusal": [item(REFUSAL)],
    "content filter": [say("half"), incomplete("content_filter")],
    "cut off": [say("half"), incomplete("max_output_tokens")],
    "call": [call("z", "exec_command", {"cmd": "touch called"})],
    "unknown call": [call("z", "no_such_tool", {})],
    "call with a word about it": [say("Let me look."), call("z", "exec_command", {"cmd": "touch called"})],
    "declined": [say("I'm sorry, but I can't help with that.")],
    "reasoning": [reasoning("B")],
    "too long": [say("word " * 40_000)],
    "refused request": api_error(400, "bad request"),
    "failed": [failed("invalid_prompt", "no")],
}


@pytest.mark.parametrize("answer", NO_SUMMARIES.values(), ids=NO_SUMMARIES)
async def test_a_session_goes_on_when_the_model_writes_no_summary(place: Place, answer: list[Any] | Answer) -> None:
    work = [shell("c1", "head -c 3000 /dev/zero | tr '\\0' x")]
    script = [work, [say("one"), FULL], answer, answer, [say("two")], [say("three")]]
    async with scripted_session(place, *script) as (model, watched):
        await watched.say("first")
        second = await watched.say("second")
        third = await watched.say("third")
    assert [type(second), type(third)] == [events.TurnCompleted, events.TurnCompleted]
    assert [request.compacts for request in model.requests] == [False, False, True, True, False, False]
    # The second attempt is shorter, and nothing that a summary calls is run.
    assert len(model.requests[3].input) < len(model.requests[2].input)
    assert not (place.repo / "called").exists()
    [cut] = watched.of(events.ContextCompacted)
    assert (cut.how, cut.reason) == ("cut", "context_limit")
    [warning] = [event for event in watched.warnings if "no summary" in event]
    assert "left out instead" in warning
    own = [text for text in model.requests[4].texts("user") if not text.startswith("<")]
    assert own == ["first", "second"]
    assert model.requests[5].window == 1


def small_window(summary: Stream | Answer) -> Callable[[Request], Stream | Answer]:
    """A model that reads 15,000 tokens, and runs a command in each turn."""

    def answer(request: Request) -> Stream | Answer:
        if len(request.raw) > 60_000:
            return api_error(400, "too long", kind="context_length_exceeded")
        if request.compacts:
            return summary
        is_done = request.input[-1]["type"] == "function_call_output"
        return [say("done")] if is_done else [shell(f"c{len(request.raw)}", "head -c 9000 /dev/zero | tr '\\0' x")]

    return answer


AT_ONCE = {"retry-after": "0"}
NEVER_SUMMED_UP: dict[str, Stream | Answer] = {
    "too long for the window": [say("word " * 12_000)],
    "fails": status(500, "no", AT_ONCE),
    "busy": status(429, "no", AT_ONCE),
    "too slow": status(504, "no", AT_ONCE),
}


@pytest.mark.parametrize("top", ["model_context_window = 15000", ""], ids=["known window", "larger window assumed"])
@pytest.mark.parametrize("summary", NEVER_SUMMED_UP.values(), ids=NEVER_SUMMED_UP)
async def test_a_session_goes_on_whatever_requests_for_a_summary_come_to(
    place: Place, summary: Stream | Answer, top: str
) -> None:
    async with scripted_session(place, repeat(small_window(summary)), top=top) as (model, watched):
        ended = [await watched.say(f"message {number}") for number in range(6)]
    assert {type(event) for event in ended} == {events.TurnCompleted}
    assert {event.how for event in watched.of(events.ContextCompacted)} == {"cut"}
    asked = [request.texts("user")[-2] for request in model.requests if request.compacts]
    assert 0 < max(asked.count(text) for text in asked) <= 8
    own = [text for text in model.requests[-1].texts("user") if not text.startswith("<")]
    assert (own[0], own[-1]) == ("message 0", "message 5")


async def test_a_request_without_the_oldest_items_has_the_summary_of_these(place: Place) -> None:
    """The server reads less than it is thought to, so that each request for a summary is too long at first."""
    async with scripted_session(place, repeat(small_window([say("what was so far")]))) as (model, watched):
        for number in range(8):
            await watched.say(f"message {number}")
    assert [event.how for event in watched.of(events.ContextCompacted)] == ["local", "local"]
    *_, last = [request for request in model.requests if request.compacts]
    assert [text for text in last.texts("user") if "what was so far" in text]


async def test_a_long_turn_may_be_summed_up_more_often_than_a_summary_may_fail(place: Place) -> None:
    long = "head -c 30000 /dev/zero | tr '\\0' x"
    steps = [
        step
        for number in range(10)
        for step in ([shell(f"c{number}", long), completed(tokens(6000, 10))], [say(f"sum {number}")])
    ]
    top = "model_auto_compact_token_limit = 8000"
    async with scripted_session(place, *steps, [say("done")], top=top) as (_, watched):
        ended = await watched.say("first")
    assert isinstance(ended, events.TurnCompleted)
    assert [event.how for event in watched.of(events.ContextCompacted)] == ["local"] * 10


async def test_outputs_go_first_and_then_the_oldest_turns(place: Place) -> None:
    """In a small window, with a model that never writes a summary; each cut is said, and no turn fails."""
    long = "head -c 12000 /dev/zero | tr '\\0' x"

    def answer(request: Request) -> Stream:
        if request.compacts:
            return [say("")]
        last = request.input[-1]
        return (
            [say("done " * 800)] if last["type"] == "function_call_output" else [shell(f"c{len(model.requests)}", long)]
        )

    async with scripted_session(place, repeat(answer), top="model_context_window = 20000") as (model, watched):
        ended = [await watched.say(f"message {number}") for number in range(12)]
    assert {type(event) for event in ended} == {events.TurnCompleted}
    cuts = [event.summary for event in watched.of(events.ContextCompacted)]
    assert cuts and all(cut.startswith("left out: ") and "tool output" in cut for cut in cuts)
    assert any("turn" in cut for cut in cuts)
    own = [text for text in model.requests[-1].texts("user") if not text.startswith("<")]
    assert (own[0], own[-1]) == ("message 0", "message 11")
    assert max(len(request.raw) for request in model.requests if not request.compacts) < 20_000 * 4
    after = model.requests[-1]
    assert any(text.startswith("The conversation grew too long") for text in after.texts("developer"))


async def test_the_users_own_words_ask_for_a_summary_at_the_end_of_the_unchanged_request(place: Place) -> None:
    with FakeResponses([say("one"), FULL], [say("sum")], [say("two")]) as model:
        async with watched_session(place, model, 'compact_prompt = "Sum it up in five lines."') as watched:
            await watched.say("first")
            await watched.say("second")
    before, summary_request = model.requests[:2]
    assert summary_request.input_bytes.startswith(before.input_bytes[:-1])
    assert summary_request.texts("user")[-1] == "Sum it up in five lines."
    assert summary_request.part("tools") == before.part("tools")

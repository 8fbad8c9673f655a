"""What a turn does with what the model answers."""

from __future__ import annotations

import json
import os
import threading
from typing import Any, Final

import pytest

from codex_py.protocol import events
from tests.support.fake_responses import (
    FakeResponses,
    call,
    completed,
    custom_call,
    delta,
    hang,
    item,
    reasoning,
    reasoning_delta,
    say,
    tokens,
)
from tests.support.home import MODEL, Place
from tests.support.rollout import read_rollout, recorded_items
from tests.support.script import shell
from tests.support.session import scripted_session, watched_session

LOCAL: Final = "unsupported call: local_shell"


def after_output(text: str) -> str:
    return text.partition("Output:\n")[2]


async def test_the_answer_of_a_turn_is_the_last_message(place: Place) -> None:
    async with scripted_session(place, [delta("do"), delta("ne"), say("done")]) as (model, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "done"
    assert [event.text for event in watched.of(events.TextDelta)] == ["do", "ne"]
    assert model.requests[0].texts("user")[-1] == "go"


async def test_a_message_that_is_only_streamed_counts_as_said(place: Place) -> None:
    async with scripted_session(place, [delta("do"), delta("ne"), completed()], [say("again")]) as (model, watched):
        ended = await watched.say("go")
        await watched.say("next")
    assert isinstance(ended, events.TurnCompleted)
    assert (ended.last_message, watched.of(events.MessageDone)[0].text) == ("done", "done")
    assert model.requests[1].texts("assistant") == ["done"]


async def test_an_empty_answer_is_a_normal_end(place: Place) -> None:
    async with scripted_session(place, [completed()]) as (_, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message is None


async def test_tool_output_goes_back_to_the_model(place: Place) -> None:
    async with scripted_session(place, [shell("c1", "echo hi; exit 3")], [say("done")]) as (model, watched):
        await watched.say("go")
    output = model.requests[1].output_of("c1")
    assert "Process exited with code 3\n" in output
    assert after_output(output) == "hi\n"
    [finished] = watched.of(events.CommandFinished)
    assert (finished.exit_code, finished.output, finished.status) == (3, "hi\n", "failed")


async def test_outputs_keep_the_order_of_the_calls(place: Place) -> None:
    # The first call can only end after the second has: they must overlap.
    os.mkfifo(place.repo / "pipe")
    with FakeResponses([shell("slow", "cat pipe"), shell("quick", "echo late > pipe")], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    kinds = [one["call_id"] for one in model.requests[1].input if one["type"] == "function_call_output"]
    assert kinds == ["slow", "quick"]
    assert after_output(model.requests[1].output_of("slow")) == "late\n"


async def test_a_call_runs_while_the_response_is_still_on_its_way(place: Place) -> None:
    ran = threading.Event()
    with FakeResponses([shell("c1", "echo hi"), hang(ran), say("meanwhile")], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            # The rest of the stream is sent only once the command has ended.
            watched.on(events.CommandFinished, ran.set)
            await watched.say("go")
    assert [event.text for event in watched.of(events.MessageDone)] == ["meanwhile", "done"]


async def test_a_patch_waits_for_the_commands_before_it_and_holds_up_those_after(place: Place) -> None:
    place.write("a.txt", "old\n")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new\n*** End Patch"
    stream = [
        shell("c1", "read x < gate; cat a.txt"),
        custom_call("c2", "apply_patch", patch),
        shell("c3", "cat a.txt"),
    ]
    os.mkfifo(place.repo / "gate")
    gate = os.open(place.repo / "gate", os.O_RDWR | os.O_NONBLOCK)
    try:
        async with scripted_session(place, stream, [say("done")]) as (model, watched):
            watched.on(events.CommandStarted, lambda: os.write(gate, b"go\n"))
            await watched.say("go")
    finally:
        os.close(gate)
    assert after_output(model.requests[1].output_of("c1")) == "old\n"
    assert after_output(model.requests[1].output_of("c3")) == "new\n"


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        (call("c", "nope", {}), "unsupported call: nope"),
        (call("c", "exec_comand", {}), "unsupported call: exec_comand; did you mean `exec_command`?"),
        (call("c", "ApplyPatch", {}), "unsupported call: ApplyPatch; did you mean `apply_patch`?"),
        (item({"type": "function_call", "call_id": "c", "arguments": "{}"}), "unsupported call: "),
        (item({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}}), LOCAL),
        (item({"type": "custom_tool_call", "call_id": "c", "input": "x"}), "unsupported custom tool call: "),
        (custom_call("c", "nope", "x"), "unsupported custom tool call: nope"),
        (call("c", "exec_command", "{not json"), "failed to parse function arguments: "),
        (call("c", "exec_command", {}), "failed to parse function arguments: "),
        (call("c", "exec_command", "[]"), "failed to parse function arguments: "),
    ],
)
async def test_the_model_reads_what_was_wrong_with_a_call(place: Place, wanted: Any, answer: str) -> None:
    async with scripted_session(place, [wanted], [say("sorry")]) as (model, watched):
        ended = await watched.say("go")
    assert model.requests[1].output_of("c").startswith(answer)
    assert "\n" not in model.requests[1].output_of("c")
    # And so does the user, to whom nothing else is told of it.
    assert [(result.ok, result.output) for result in watched.of(events.ToolCallFinished)] == [
        (False, model.requests[1].output_of("c"))
    ]
    assert isinstance(ended, events.TurnCompleted)


async def test_an_output_nobody_called_for_is_not_sent_on(place: Place) -> None:
    stray = item({"type": "function_call_output", "call_id": "stray", "output": "x"})
    async with scripted_session(place, [stray, say("one")], [say("two")], excuse={"replay"}) as (_, watched):
        await watched.say("first")
        await watched.say("second")


async def test_a_refusal_is_what_the_model_said_and_fails_the_turn(place: Place) -> None:
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
    async with scripted_session(place, [item(refusal)]) as (_, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert (ended.message, ended.failure) == ("the model has refused to answer: I will not.", "refused")
    assert [event.text for event in watched.of(events.MessageDone)] == ["I will not."]


async def test_unknown_items_and_fields_come_back_unchanged(place: Place) -> None:
    odd = {"type": "hologram", "id": "h1", "depth": {"z": [1, 2.5, None]}, "text": "ünï \u2028 \U0001f600"}
    thought = {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "BLOB==", "novel": True}
    async with scripted_session(place, [item(odd), item(thought), say("one")], [say("two")]) as (model, watched):
        await watched.say("first")
        await watched.say("second")
    assert odd in model.requests[1].input
    assert thought in model.requests[1].input


async def test_reasoning_is_shown_and_replayed(place: Place) -> None:
    stream = [reasoning_delta("Thin"), reasoning("SECRET", "Thinking", "Twice"), say("one")]
    async with scripted_session(place, stream, [say("two")]) as (model, watched):
        await watched.say("first")
        await watched.say("second")
    assert [event.text for event in watched.of(events.ReasoningDone)] == ["Thinking\n\nTwice"]
    [sent] = [one for one in model.requests[1].input if one["type"] == "reasoning"]
    assert sent["encrypted_content"] == "SECRET"


@pytest.mark.parametrize(("top", "shown"), [("", []), ("show_raw_agent_reasoning = true", ["raw"])])
async def test_raw_reasoning_is_shown_only_when_asked_for(place: Place, top: str, shown: list[str]) -> None:
    thought = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "raw"}],
        "encrypted_content": "B",
    }
    async with scripted_session(place, [item(thought), say("done")], top=top) as (_, watched):
        await watched.say("go")
    assert [event.text for event in watched.of(events.ReasoningDone)] == shown


async def test_end_turn_false_asks_once_more(place: Place) -> None:
    async with scripted_session(place, [say("so far"), completed(end_turn=False)], [say("done")]) as (_, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "done"


async def test_calls_with_the_same_id_are_both_run_and_both_answered(place: Place) -> None:
    with FakeResponses([shell("c", "echo 1"), shell("c", "echo 2")], [say("done")], excuse={"pairs"}) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    outputs = [after_output(one["output"]) for one in model.requests[1].input if one["type"] == "function_call_output"]
    assert outputs == ["1\n", "2\n"]


async def test_a_call_that_came_without_an_id_is_run_and_answered(place: Place) -> None:
    nameless = {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "echo 1", "login": false}'}
    async with scripted_session(place, [item(nameless)], [say("done")], excuse={"replay"}) as (model, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    called, answered = model.requests[1].input[-2:]
    assert called == {**nameless, "call_id": answered["call_id"]}
    assert after_output(answered["output"]) == "1\n"


async def test_usage_adds_up_over_the_turn(place: Place) -> None:
    first = [shell("c", "true"), completed(tokens(100, 10, cached=40, reasoning=5))]
    second = [say("done"), completed(tokens(150, 20, cached=100))]
    async with scripted_session(place, first, second) as (_, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    usage = ended.usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens, usage.reasoning_output_tokens) == (
        250,
        140,
        30,
        5,
    )


async def test_what_is_sent_is_what_is_stored(place: Place) -> None:
    with FakeResponses([reasoning("B"), shell("c", "echo x")], [say("one")], [say("two")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            await watched.say("second")
    [rollout] = place.rollouts()
    stored = recorded_items(rollout)
    # Reasoning is stored with the model that wrote it.
    origins = [item.pop("made_by") for item in stored if item["type"] == "reasoning"]
    assert origins == [{"provider": "fake", "model": MODEL, "wire": "responses"}]
    assert stored[: len(model.requests[2].input)] == model.requests[2].input
    raw = rollout.read_bytes()
    for one in model.requests[2].input:
        assert json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode()[:-1] in raw


async def test_the_file_shows_other_readers_who_said_what(place: Place) -> None:
    async with scripted_session(place, [say("looking"), shell("c", "true")], [say("done")]) as (_, watched):
        await watched.say("go")
    [rollout] = place.rollouts()
    said = [record.payload for record in read_rollout(rollout) if record.type == "event_msg"]
    assert [(one["type"], one["message"]) for one in said if "message" in one] == [
        ("user_message", "go"),
        ("agent_message", "looking"),
        ("agent_message", "done"),
    ]


async def test_an_ephemeral_session_leaves_no_file(place: Place) -> None:
    async with scripted_session(place, [say("done")], ephemeral=True) as (_, watched):
        await watched.say("go")
    assert place.rollouts() == []


async def test_the_key_never_reaches_a_command_nor_comes_back_from_one(place: Place) -> None:
    place = place.with_env(FAKE_KEY="sk-very-secret-value")
    place.write("leak.txt", "the key is sk-very-secret-value\n")
    stream = [shell("c1", "env"), shell("c2", "cat leak.txt")]
    async with scripted_session(place, stream, [say("done")], env_key="FAKE_KEY") as (model, watched):
        await watched.say("go")
    assert model.requests[0].headers["authorization"] == "Bearer sk-very-secret-value"
    assert b"sk-very-secret-value" not in model.requests[1].raw
    assert "the key is [redacted]" in model.requests[1].output_of("c2")
    [rollout] = place.rollouts()
    assert b"sk-very-secret-value" not in rollout.read_bytes()

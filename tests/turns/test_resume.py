"""A session that is picked up again."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, call, completed, hang, reasoning, say, tokens
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session


async def first_run(place: Place, model: FakeResponses, **settings: Any) -> str:
    async with watched_session(place, model, **settings) as watched:
        await watched.say("first")
        return watched.session.thread_id


async def test_the_first_request_after_a_resume_extends_the_last_one_before(place: Place) -> None:
    tool = call("c1", "exec_command", {"cmd": "echo hi"})
    with FakeResponses([reasoning("B"), tool], [say("one")], [say("two")]) as model:
        thread = await first_run(place, model)
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("second")
    # The fake server has checked the prefix; the rest is what was added.
    added = model.requests[2].input[len(model.requests[1].input) :]
    assert [(one["type"], one.get("role")) for one in added] == [("message", "assistant"), ("message", "user")]
    assert model.requests[2].body["prompt_cache_key"] == thread


async def test_only_what_changed_is_reported_again(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")], [say("three")], excuse={"head"}) as model:
        thread = await first_run(place, model, sandbox="read-only")
        place.write("AGENTS.md", "Prefer tabs.\n")
        async with watched_session(place, model, resume=thread, sandbox="workspace-write") as watched:
            await watched.say("second")
            await watched.say("third")
    second = model.requests[1].input[len(model.requests[0].input) + 1 :]
    texts = ["".join(part["text"] for part in one["content"]) for one in second]
    assert [one["role"] for one in second] == ["user", "developer", "user", "user"]
    assert "Prefer tabs." in texts[0]
    assert "`workspace-write`" in texts[1]
    assert texts[2].startswith("<environment_context>")
    assert "<cwd>" not in texts[2]
    assert texts[3] == "second"
    # Told once: the turn after it adds the answer and the prompt, nothing else.
    assert len(model.requests[2].input) == len(model.requests[1].input) + 2


async def test_a_call_that_was_cut_off_is_answered_aborted(place: Place) -> None:
    with FakeResponses([call("c1", "exec_command", {"cmd": "echo hi"})], [say("one")]) as model:
        thread = await first_run(place, model)
    forget_after_call(place.rollouts()[0])
    async with scripted_session(place, [say("two")], resume=thread) as (model, watched):
        await watched.say("second")
    assert model.requests[0].output_of("c1") == "aborted"


async def test_usage_counts_on_from_the_earlier_run(place: Place) -> None:
    with FakeResponses([say("1"), completed(tokens(100, 5))], [say("2"), completed(tokens(200, 7))]) as model:
        thread = await first_run(place, model)
        async with watched_session(place, model, resume=thread) as watched:
            ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (300, 12)


def forget_after_call(rollout: Path) -> None:
    """Cut the file right after the call, as a crash would."""
    lines = rollout.read_text().splitlines(keepends=True)
    index = next(i for i, line in enumerate(lines) if json.loads(line)["payload"].get("type") == "function_call")
    rollout.write_text("".join(lines[: index + 1]))


async def test_an_output_is_on_disk_before_anybody_hears_of_it_and_survives_a_kill(place: Place) -> None:
    """The stream is still open when the commands end: their outputs have no place in the history yet."""
    heard = threading.Event()
    commands = [call(f"c{n}", "exec_command", {"cmd": f"echo {n}", "login": False}) for n in (1, 2)]
    files: list[bytes] = []
    with FakeResponses([*commands, hang(heard), say("one")], [say("done", id="msg_2")]) as model:
        async with watched_session(place, model) as watched:

            def on_end() -> None:
                files.append(place.rollouts()[0].read_bytes())
                if len(files) == 2:
                    heard.set()

            watched.on(events.CommandFinished, on_end)
            await watched.say("first")
            thread = watched.session.thread_id
    # What a kill at the moment of the second event would have left.
    place.rollouts()[0].write_bytes(files[1])
    async with scripted_session(place, [say("two")], resume=thread) as (model, watched):
        await watched.say("second")
    outputs = [one for one in model.requests[0].input if one["type"] == "function_call_output"]
    assert [(one["call_id"], one["output"].partition("Output:\n")[2]) for one in outputs] == [
        ("c1", "1\n"),
        ("c2", "2\n"),
    ]
    # In the file the calls are answered now, once, and a further resume finds the same.
    async with scripted_session(place, [say("three")], resume=thread) as (model, watched):
        await watched.say("third")
    assert [one for one in model.requests[0].input if one["type"] == "function_call_output"] == outputs


async def test_of_two_calls_only_the_one_that_had_ended_keeps_its_output(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    commands = [
        call("c1", "exec_command", {"cmd": "cat never", "login": False}),
        call("c2", "exec_command", {"cmd": "echo 2", "login": False}),
    ]
    files: list[bytes] = []
    async with scripted_session(place, [*commands]) as (model, watched):

        def on_end() -> None:
            files.append(place.rollouts()[0].read_bytes())
            watched.session.interrupt()

        watched.on(events.CommandFinished, on_end)
        await watched.say("first")
        thread = watched.session.thread_id
    place.rollouts()[0].write_bytes(files[0])
    async with scripted_session(place, [say("two")], resume=thread) as (model, watched):
        await watched.say("second")
    assert model.requests[0].output_of("c1") == "aborted"
    assert model.requests[0].output_of("c2").endswith("Output:\n2\n")

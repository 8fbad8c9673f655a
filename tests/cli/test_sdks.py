"""The published SDKs drive `codex-py` in place of the program they were made for."""

from __future__ import annotations

import json
import os
from unittest.mock import ANY

import pytest

from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    call,
    completed,
    custom_call,
    item,
    reasoning,
    repeat,
    say,
    tokens,
)
from tests.support.home import GIF, Place
from tests.support.process import run
from tests.support.sdk_drive import KEY, PATCH, SCHEMA, drive, items, kinds, python_sdk, typescript_sdk

SDKS = {"python": python_sdk, "typescript": typescript_sdk}


@pytest.fixture(params=SDKS)
def sdk(request: pytest.FixtureRequest) -> list[str]:
    return SDKS[request.param]()


def test_a_turn_with_tools_and_structured_output(sdk: list[str], place: Place) -> None:
    script = (
        [reasoning("blob", "Thinking"), call("c1", "exec_command", {"cmd": "echo hi"})],
        [custom_call("p1", "apply_patch", PATCH)],
        [say('{"answer": "hi"}'), completed(tokens(100, 10, cached=40, reasoning=5))],
    )
    thread = {
        "sandboxMode": "workspace-write",
        "skipGitRepoCheck": True,
        "modelReasoningEffort": "high",
        "networkAccessEnabled": False,
        "approvalPolicy": "never",
        "additionalDirectories": [str(place.home)],
    }
    with FakeResponses(*script) as model:
        seen = drive(sdk, place, model, "say hi", thread=thread, turn={"outputSchema": SCHEMA})

    done = items(seen)
    assert seen["error"] is None
    assert kinds(seen) == [
        "thread.started",
        "turn.started",
        "item.completed",
        "item.started",
        "item.completed",
        "item.completed",
        "item.completed",
        "turn.completed",
    ]
    assert seen["id"] == seen["events"][0]["thread_id"] == model.requests[0].body["prompt_cache_key"]
    assert [item["type"] for item in done] == ["reasoning", "command_execution", "file_change", "agent_message"]
    assert done[1]["aggregated_output"] == "hi\n"
    assert done[2]["changes"] == [{"path": str(place.repo / "new.txt"), "kind": "add"}]
    assert json.loads(done[3]["text"]) == {"answer": "hi"}
    assert seen["events"][-1]["usage"] == {
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "cache_write_input_tokens": 0,
        "output_tokens": 10,
        "reasoning_output_tokens": 5,
        "cost_usd": ANY,
    }
    first = model.requests[0]
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["originator"] in ("codex_sdk_ts", "codex_sdk_py")
    assert first.body["model"] == "gpt-5.2"
    assert first.body["reasoning"]["effort"] == "high"
    assert first.body["text"]["format"]["schema"] == SCHEMA
    assert first.texts("user")[-1] == "say hi"


def test_a_thread_goes_on_with_images(sdk: list[str], place: Place) -> None:
    pixel = place.write("p.gif", GIF)
    with FakeResponses([say("one")], [say("two")]) as model:
        first = drive(sdk, place, model, "first")
        inputs = [{"type": "text", "text": "look"}, {"type": "local_image", "path": str(pixel)}]
        again = drive(sdk, place, model, inputs, resume=first["id"])

    assert (first["error"], again["error"]) == (None, None)
    assert again["id"] == first["id"]
    assert [part["type"] for part in model.requests[1].input[-1]["content"]] == [
        "input_text",
        "input_image",
        "input_text",
        "input_text",
    ]
    assert model.requests[1].texts("user")[-1] == "look"
    assert model.requests[1].texts("assistant") == ["one"]


def test_an_abort_stops_the_turn_and_the_thread_goes_on(sdk: list[str], place: Place) -> None:
    sleeper = call("c1", "exec_command", {"cmd": "sleep 1000"})
    with FakeResponses([sleeper], [say("back")]) as model:
        aborted = drive(sdk, place, model, "wait", abortAt="item.started")
        # One SDK kills, the other does not wait for the end; the next process must be let in all the same.
        again = drive(sdk, place, model, "and now?", resume=aborted["id"])

    assert aborted["error"]["name"] == "AbortError"
    assert kinds(aborted)[:3] == ["thread.started", "turn.started", "item.started"]
    assert again["error"] is None, again
    assert "aborted" in model.requests[1].output_of("c1")


def test_a_run_that_its_caller_aborts_is_an_abort_error(sdk: list[str], place: Place) -> None:
    line = place.repo / "line"
    os.mkfifo(line)
    sleeper = call("c1", "exec_command", {"cmd": "echo up > line; sleep 1000"})
    with FakeResponses([sleeper]) as model:
        seen = drive(sdk, place, model, "wait", abortOn=str(line), thread={"sandboxMode": "workspace-write"})

    assert seen["error"]["name"] == "AbortError", seen["error"]


def test_a_turn_that_is_compacted_in_its_middle_goes_on(sdk: list[str], place: Place) -> None:
    script = (
        [call("c1", "exec_command", {"cmd": "echo hi"}), completed(tokens(500_000, 10))],
        [item({"type": "compaction", "encrypted_content": "SEALED"}), completed(tokens(40, 10))],
        [say("done"), completed(tokens(60, 10))],
    )
    with FakeResponses(*script) as model:
        seen = drive(sdk, place, model, "say hi", thread={"skipGitRepoCheck": True})

    assert seen["error"] is None
    assert kinds(seen)[-3:] == ["item.completed", "item.completed", "turn.completed"]
    assert model.requests[2].window == 1


def test_any_character_keeps_an_event_on_one_line(sdk: list[str], place: Place) -> None:
    text = "a\u2028b\u2029c\x85d\re\x0bf\x0cg\x1ch 👩‍💻\n"
    with FakeResponses([say(text)]) as model:
        seen = drive(sdk, place, model, "go")

    assert seen["error"] is None
    assert [item["text"] for item in items(seen)] == [text]


def test_a_failing_api_is_an_event_and_an_exit_status(sdk: list[str], place: Place) -> None:
    with FakeResponses(api_error(400, "the model is out")) as model:
        seen = drive(sdk, place, model, "go")

    assert kinds(seen) == ["thread.started", "turn.started", "error", "turn.failed"]
    assert "the model is out" in seen["events"][-1]["error"]["message"]
    assert seen["error"]["message"].startswith("Codex Exec exited with code 1")


def test_a_place_that_is_no_repository_is_refused(sdk: list[str], place: Place) -> None:
    with FakeResponses() as model:
        seen = drive(sdk, place, model, "go", thread={"workingDirectory": str(place.home)})

    assert seen["events"] == []
    assert seen["error"]["message"].startswith("Codex Exec exited with code 1: error: ")


def test_what_one_sdk_alone_can_ask_for(place: Place) -> None:
    thread = {"webSearchMode": "live", "threadSource": "sdk"}
    config = {"show_raw_agent_reasoning": True, "sandbox_workspace_write": {"exclude_slash_tmp": True}}
    with FakeResponses(repeat([say("done")]), excuse={"threads"}) as model:
        typed = drive(typescript_sdk(), place, model, "go", thread=thread, codex={"config": config})
        live = drive(python_sdk(), place, model, "go", thread={"webSearchEnabled": True})
        cached = drive(python_sdk(), place, model, "go", thread={"webSearchEnabled": False})

    searches = [request.body["tools"][-1]["external_web_access"] for request in model.requests]
    assert [seen["error"] for seen in (typed, live, cached)] == [None, None, None]
    assert searches == [True, True, False]
    assert kinds(live) == ["thread.started", "turn.started", "item.completed", "turn.completed"]


def test_outputs_of_any_size_reach_the_reader(sdk: list[str], place: Place) -> None:
    long = call("c1", "exec_command", {"cmd": "yes '\u2028 \" wide ünïcode' | head -c 1000000"})
    names = [f"{n:03}-{'x' * 180}" for n in range(400)]
    many = "".join(f"*** Add File: {name}\n+x\n" for name in names)
    patch = f"*** Begin Patch\n{many}*** End Patch\n"
    bulk = {"cmd": f"printf '%s' '{'y' * 90_000}' | wc -c"}
    script = (
        [reasoning("blob", "thought " * 20_000), long, call("c2", "exec_command", bulk)],
        [custom_call("p1", "apply_patch", patch)],
        [say("short")],
    )
    with FakeResponses(*script) as model:
        seen = drive(sdk, place, model, "go", thread={"sandboxMode": "workspace-write"})

    changed = [change["path"] for item in items(seen) if item["type"] == "file_change" for change in item["changes"]]
    # The two run side by side, and either may end first.
    outputs = sorted(item["aggregated_output"] for item in items(seen) if item["type"] == "command_execution")
    assert seen["error"] is None
    assert changed == [str(place.repo / name) for name in names]
    assert outputs[0] == "90000\n"
    assert outputs[1].startswith('\u2028 " wide')
    assert " characters left out …]" in outputs[1]
    assert items(seen)[-1]["text"] == "short"


def test_a_long_answer_is_whole_where_it_can_be_read(place: Place) -> None:
    answer = "".join(f"line {n}\n" for n in range(20_000))
    with FakeResponses(repeat([say(answer)]), excuse={"threads"}) as model:
        typed = drive(typescript_sdk(), place, model, "go")
        snake = drive(python_sdk(), place, model, "go")
        place.use_model(model.base_url)
        lines = run(place, "exec", "--json", "go")
        plain = run(place, "exec", "-o", place.home / "answer", "go")

    [cut] = [item["text"] for item in items(snake)]
    assert (typed["error"], snake["error"]) == (None, None)
    assert [item["text"] for item in items(typed)] == [answer]
    assert lines.events[-2]["item"]["text"] == answer
    assert plain.out == answer + "\n"
    assert (place.home / "answer").read_text() == answer
    assert (cut[:14], cut[-11:]) == ("line 0\nline 1\n", "line 19999\n")
    assert " characters left out …]" in cut

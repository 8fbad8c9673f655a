"""The published TypeScript SDK drives `codex-py` in place of the program it was made for."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fake_responses import FakeResponses, api_error, call, completed, custom_call, reasoning, say, tokens
from tests.support.home import BIN, Place
from tests.support.process import COMMAND

DRIVE: Final = Path(__file__).parents[1] / "support/sdk/drive.mjs"
PATCH: Final = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"
KEY: Final = "sk-sdk-0123456789abcdef"


@pytest.fixture(scope="session")
def node() -> str:
    """The node that runs the SDK. Missing parts fail the tests: `scripts/test` installs them."""
    found = shutil.which("node") or shutil.which("node", path=str(BIN))
    assert found, "node is neither on the machine nor in the dev extra"
    assert (DRIVE.parent / "node_modules/@openai/codex-sdk").is_dir(), "run `scripts/setup_node` first"
    return found


def drive(node: str, place: Place, model: FakeResponses, input: Any, **job: Any) -> dict[str, Any]:
    """One turn through the SDK with the built-in provider; gives back what it saw."""
    codex = {"codexPathOverride": COMMAND, "baseUrl": model.base_url, "apiKey": KEY, "env": place.env}
    thread = {"model": "gpt-5.2", "workingDirectory": str(place.repo), **job.pop("thread", {})}
    ended = subprocess.run(
        [node, str(DRIVE)],
        input=json.dumps({"codex": {**codex, **job.pop("codex", {})}, "thread": thread, "input": input, **job}),
        env={"PATH": place.env["PATH"]},
        cwd=place.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


def kinds(seen: dict[str, Any]) -> list[str]:
    return [event["type"] for event in seen["events"]]


def test_a_turn_with_tools_and_structured_output(node: str, place: Place) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "string"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
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
        "webSearchMode": "disabled",
        "approvalPolicy": "never",
        "additionalDirectories": [str(place.home)],
        "threadSource": "sdk",
    }
    config = {"show_raw_agent_reasoning": True, "sandbox_workspace_write": {"exclude_slash_tmp": True}}
    with FakeResponses(*script) as model:
        seen = drive(
            node, place, model, "say hi", thread=thread, turn={"outputSchema": schema}, codex={"config": config}
        )

    items = [event["item"] for event in seen["events"] if event["type"] == "item.completed"]
    assert seen["error"] is None
    assert kinds(seen) == [
        "thread.started",
        "turn.started",
        "item.completed",
        "item.started",
        "item.completed",
        "item.started",
        "item.completed",
        "item.completed",
        "turn.completed",
    ]
    assert seen["id"] == seen["events"][0]["thread_id"] == model.requests[0].body["prompt_cache_key"]
    assert [item["type"] for item in items] == ["reasoning", "command_execution", "file_change", "agent_message"]
    assert items[1]["aggregated_output"] == "hi\n"
    assert items[2]["changes"] == [{"path": str(place.repo / "new.txt"), "kind": "add"}]
    assert json.loads(items[3]["text"]) == {"answer": "hi"}
    assert seen["events"][-1]["usage"] == {
        "input_tokens": 100,
        "cached_input_tokens": 40,
        "cache_write_input_tokens": 0,
        "output_tokens": 10,
        "reasoning_output_tokens": 5,
    }
    first = model.requests[0]
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.headers["originator"] == "codex_sdk_ts"
    assert first.body["model"] == "gpt-5.2"
    assert first.body["reasoning"]["effort"] == "high"
    assert first.body["text"]["format"]["schema"] == schema
    assert first.texts("user")[-1] == "say hi"


def test_a_thread_goes_on_with_images(node: str, place: Place) -> None:
    pixel = place.write("p.gif", b"GIF89a\1\0\1\0\0\0\0;")
    with FakeResponses([say("one")], [say("two")]) as model:
        first = drive(node, place, model, "first")
        inputs = [{"type": "text", "text": "look"}, {"type": "local_image", "path": str(pixel)}]
        again = drive(node, place, model, inputs, resume=first["id"])

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


def test_an_abort_stops_the_turn_and_the_thread_goes_on(node: str, place: Place) -> None:
    sleeper = call("c1", "exec_command", {"cmd": "sleep 1000"})
    with FakeResponses([sleeper], [say("back")]) as model:
        aborted = drive(node, place, model, "wait", abortAt="item.started")
        # The SDK does not wait for the process it told to stop; the next one must be let in all the same.
        again = drive(node, place, model, "and now?", resume=aborted["id"])

    assert aborted["error"]["name"] == "AbortError"
    assert kinds(aborted)[:3] == ["thread.started", "turn.started", "item.started"]
    assert again["error"] is None, again
    assert "aborted" in model.requests[1].output_of("c1")


def test_any_character_keeps_an_event_on_one_line(node: str, place: Place) -> None:
    text = "a\u2028b\u2029c\x85d\re\x0bf\x0cg\x1ch 👩‍💻\n"
    with FakeResponses([say(text)]) as model:
        seen = drive(node, place, model, "go")

    assert seen["error"] is None
    assert [event["item"]["text"] for event in seen["events"] if "item" in event] == [text]


def test_a_failing_api_is_an_event_and_an_exit_status(node: str, place: Place) -> None:
    with FakeResponses(api_error(400, "the model is out")) as model:
        seen = drive(node, place, model, "go")

    assert kinds(seen) == ["thread.started", "turn.started", "error", "turn.failed"]
    assert "the model is out" in seen["events"][-1]["error"]["message"]
    assert seen["error"]["message"].startswith("Codex Exec exited with code 1")


def test_a_place_that_is_no_repository_is_refused(node: str, place: Place) -> None:
    with FakeResponses() as model:
        seen = drive(node, place, model, "go", thread={"workingDirectory": str(place.home)})

    assert seen["events"] == []
    assert seen["error"]["message"].startswith("Codex Exec exited with code 1: error: ")

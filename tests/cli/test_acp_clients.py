"""`codex-py acp` and clients that nobody here wrote: the libraries of the protocol, each in its own language."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, call, completed, custom_call, reasoning, say, tokens
from tests.support.home import Place
from tests.support.mcp_servers import node
from tests.support.sdk_drive import played
from tests.support.warm import warm_command

SDK = Path(__file__).parents[1] / "support/sdk"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"
OUTSIDE = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "to make it"}


@pytest.fixture(params=["python", "typescript"])
def client(request: pytest.FixtureRequest) -> list[str]:
    """How to start the driver of a library. Missing parts fail the tests: `scripts/test` installs them."""
    if request.param == "python":
        return [sys.executable, str(SDK / "acp_drive.py")]
    assert (SDK / "node_modules/@agentclientprotocol/sdk").is_dir(), "run `scripts/setup_node` first"
    return [node(), str(SDK / "acp_drive.mjs")]


def drive(client: list[str], place: Place, model: FakeResponses, *prompts: str, **job: Any) -> dict[str, Any]:
    """One session through a library; gives back what it saw."""
    place.use_model(model.base_url)
    value = {
        "command": warm_command(),
        "args": ["acp"],
        "env": place.env,
        "cwd": str(place.repo),
        "prompts": prompts,
        **job,
    }
    return played(client, place, value)


def kinds(seen: dict[str, Any]) -> list[str]:
    return [update["sessionUpdate"] for update in seen["updates"]]


def test_a_client_works_through_a_session(client: list[str], place: Place) -> None:
    steps = {"plan": [{"step": "look", "status": "completed"}]}
    script = (
        [
            reasoning("blob", "Thinking"),
            call("c1", "exec_command", {"cmd": "echo hi"}),
            call("u1", "update_plan", steps),
        ],
        [custom_call("p1", "apply_patch", PATCH)],
        [say("done"), completed(tokens(100, 10))],
        [say("again")],
    )
    with FakeResponses(*script) as model:
        seen = drive(client, place, model, "go", "and again", choose="once")

    assert seen["agent"]["name"] == "codex-py"
    assert (seen["stops"], seen["status"]) == (["end_turn", "end_turn"], 0)
    assert [one["toolCall"]["title"] for one in seen["asked"]] == ["Edit new.txt"]
    assert set(kinds(seen)) == {
        "agent_message_chunk",
        "agent_thought_chunk",
        "available_commands_update",
        "plan",
        "session_info_update",
        "tool_call",
        "tool_call_update",
        "usage_update",
    }
    texts = [one["content"]["text"] for one in seen["updates"] if one["sessionUpdate"] == "agent_message_chunk"]
    assert "".join(texts) == "done\n\nagain"
    assert (place.repo / "new.txt").read_text() == "x\n"


def test_a_client_cancels_while_it_is_asked(client: list[str], place: Place) -> None:
    with FakeResponses([call("c1", "exec_command", OUTSIDE)], [say("back")]) as model:
        seen = drive(client, place, model, "go", "and now?", cancelAt="permission")

    assert (seen["stops"], seen["status"]) == (["cancelled", "end_turn"], 0)
    assert len(seen["asked"]) == 1
    assert not (place.repo / "made").exists()

"""Which calls of MCP servers are asked about, and how an answer is remembered."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.core.mcp_build import keep_approval
from codex_py.protocol import events
from codex_py.protocol.policy import GranularApproval
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp_servers import (
    everything,
    odd,
)
from tests.support.mcp_turns import answers, output_parts, texts
from tests.support.session import watched_session

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


@pytest.mark.parametrize(
    ("tool", "question"),
    [("reads", False), ("plain", True), ("destroys", True), ("adds", True)],
)
async def test_annotations_decide_what_is_asked(place: Place, tool: str, question: bool) -> None:
    table = odd("s", "good", "tools=reads,plain,destroys,adds")
    with FakeResponses([call("c", f"mcp__s__{tool}", {"text": "x"})], [say("done")]) as model:
        async with watched_session(
            place, model, table, can_ask=True, approval="on-request", sandbox="workspace-write"
        ) as watched:
            seen = answers(watched, lambda _: None)
            await watched.say("go")
    output = output_parts(model.requests[1].body, "c")
    if not question:
        assert seen == []
        assert texts(output)[0].startswith("reads of ")
    else:
        [one] = seen
        assert isinstance(one, ApprovalQuestion)
        assert (one.server, one.command) == ("s", f's.{tool} {{"text":"x"}}')
        assert output.startswith("call declined by the user")
        assert watched.of(events.McpCallFinished)[0].status == "declined"


async def test_a_yes_is_remembered_for_the_session_and_for_good(place: Place) -> None:
    table = odd("s", "good")
    calls = [[call(f"c{number}", "mcp__s__plain", {})] for number in range(4)]
    with FakeResponses(
        *calls, [say("done")], [call("c9", "mcp__s__plain", {})], [say("done")], excuse={"threads"}
    ) as model:
        asking: dict[str, Any] = {"can_ask": True, "approval": "on-request", "sandbox": "workspace-write"}
        async with watched_session(place, model, table, **asking) as watched:
            replies = iter(["once", "session"])
            seen = answers(watched, lambda _: next(replies))
            await watched.say("go")
        assert len(seen) == 2
        keep_approval(place.codex_home, ("mcp_servers", "s"), "plain")
        config = (place.codex_home / "config.toml").read_text()
        assert 'approval_mode = "approve"' in config
        async with watched_session(
            place, model, table + '[mcp_servers.s.tools.plain]\napproval_mode = "approve"\n', **asking
        ) as watched:
            seen = answers(watched, lambda _: None)
            await watched.say("go")
        assert seen == []


@pytest.mark.parametrize(
    ("keys", "tool", "ok"),
    [
        ({}, "plain", False),
        ({}, "reads", True),
        ({"default_tools_approval_mode": "approve"}, "plain", True),
        ({"default_tools_approval_mode": "writes"}, "plain", False),
        ({"default_tools_approval_mode": "writes"}, "reads", True),
        ({"default_tools_approval_mode": "prompt"}, "reads", False),
        ({"disabled_tools": ["plain"]}, "plain", False),
    ],
)
async def test_where_nobody_is_asked_the_configuration_decides(
    place: Place, keys: dict[str, Any], tool: str, ok: bool
) -> None:
    with FakeResponses([call("c", f"mcp__s__{tool}", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "good", **keys), sandbox="read-only") as watched:
            await watched.say("go")
    output = output_parts(model.requests[1].body, "c")
    assert isinstance(output, list) == ok


@pytest.mark.parametrize("asked", [True, False])
async def test_what_a_server_wants_to_know_is_asked_only_where_the_policy_lets_it(place: Place, asked: bool) -> None:
    policy = GranularApproval(sandbox_approval=True, rules=True, mcp_elicitations=asked)
    allowed = everything(default_tools_approval_mode="approve")
    with FakeResponses([call("c", "mcp__everything__trigger-elicitation-request", {})], [say("done")]) as model:
        async with watched_session(
            place, model, allowed, can_ask=True, approval=policy, sandbox="workspace-write"
        ) as watched:
            seen = answers(watched, lambda _: None)
            await watched.say("go")
    assert bool(seen) == asked
    said = "\n".join(texts(output_parts(model.requests[1].body, "c")))
    assert ("declined" in said or "cancelled" in said) and "Ada" not in said

"""Which calls of MCP servers are asked about, and how an answer is remembered."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import GranularApproval
from codex_py.protocol.questions import ApprovalQuestion
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp_servers import everything, odd, server
from tests.support.mcp_turns import answers, output_parts, texts
from tests.support.session import scripted_session, watched_session

ASKING: dict[str, Any] = {"can_ask": True, "approval": "on-request", "sandbox": "workspace-write"}
AGAIN = ([call("c9", "mcp__s__plain", {})], [say("done")])
RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


@pytest.mark.parametrize(
    ("tool", "question"),
    [("reads", False), ("plain", True), ("destroys", True), ("adds", True)],
)
async def test_annotations_decide_what_is_asked(place: Place, tool: str, question: bool) -> None:
    table = odd("s", "good", "tools=reads,plain,destroys,adds")
    async with scripted_session(
        place,
        [call("c", f"mcp__s__{tool}", {"text": "x"})],
        [say("done")],
        top=table,
        can_ask=True,
        approval="on-request",
        sandbox="workspace-write",
    ) as (model, watched):
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


def approved(place: Place) -> str:
    """What is written down about the tool `plain` of the server `s`."""
    server = tomllib.loads((place.codex_home / "config.toml").read_text())["mcp_servers"]["s"]
    return f'[mcp_servers.s.tools.plain]\napproved_hash = "{server["tools"]["plain"]["approved_hash"]}"\n'


async def test_a_yes_is_remembered_for_the_session_and_for_good(place: Place) -> None:
    table = odd("s", "good")
    calls = [[call(f"c{number}", "mcp__s__plain", {})] for number in range(4)]
    with FakeResponses(
        *calls, [say("done")], [call("c8", "mcp__s__plain", {})], [say("done")], *AGAIN, excuse={"threads"}
    ) as model:
        async with watched_session(place, model, table, **ASKING) as watched:
            replies = iter(["once", "session"])
            seen = answers(watched, lambda _: next(replies))
            await watched.say("go")
        assert len(seen) == 2
        async with watched_session(place, model, table, **ASKING) as watched:
            seen = answers(watched, lambda _: "always")
            await watched.say("go")
        assert len(seen) == 1
        async with watched_session(place, model, table + approved(place), **ASKING) as watched:
            seen = answers(watched, lambda _: None)
            await watched.say("go")
        assert seen == []


@pytest.mark.parametrize(
    ("before", "after"), [("a tool", "another tool"), ('"type": "string"', '"type": "number"'), ("adds", "plain")]
)
async def test_a_yes_for_good_is_to_the_tool_as_it_was(place: Place, tmp_path: Path, before: str, after: str) -> None:
    script = tmp_path / "server.py"
    text = (Path(__file__).parents[1] / "support/mcp/odd_server.py").read_text()
    script.write_text(text)
    table = server("s", command=sys.executable, args=[str(script), "good"])
    with FakeResponses([call("c8", "mcp__s__plain", {})], [say("done")], *AGAIN, excuse={"threads"}) as model:
        async with watched_session(place, model, table, **ASKING) as watched:
            answers(watched, lambda _: "always")
            await watched.say("go")
        script.write_text(text.replace(before, after))
        async with watched_session(place, model, table + approved(place), **ASKING) as watched:
            seen = answers(watched, lambda _: None)
            await watched.say("go")
    [question] = seen
    assert isinstance(question, ApprovalQuestion)
    assert question.reason == (
        "`plain` of the MCP server `s` has changed since you allowed it: its description, parameters, annotations or"
        " server"
    )


async def test_a_yes_for_the_session_is_to_the_tool_as_it_was(place: Place) -> None:
    first, second = ([call(f"c{number}", "mcp__s__plain", {})] for number in range(2))
    with FakeResponses(first, [say("one")], second, [say("two")]) as model:
        async with watched_session(place, model, odd("s", "grows"), **ASKING) as watched:
            seen = answers(watched, lambda _: "session")
            await watched.say("go")
            await watched.say("go on")
    assert [isinstance(one, ApprovalQuestion) and "has changed since" in (one.reason or "") for one in seen] == [
        False,
        True,
    ]


@pytest.mark.parametrize("mode", [{"plan": True}, {"plan": False}])
async def test_a_server_that_is_not_believed_saves_no_question_and_runs_nothing_in_plan_mode(
    place: Place, mode: dict[str, Any]
) -> None:
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "good", trust_annotations=False), **ASKING) as watched:
            await watched.session.submit(OverrideTurnContext(**mode))
            seen = answers(watched, lambda _: "once")
            await watched.say("go")
    output = output_parts(model.requests[1].body, "c")
    assert len(seen) == (0 if mode["plan"] else 1)
    assert ("trust_annotations" in output) == mode["plan"]


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


@pytest.mark.parametrize("question", [True, False])
async def test_what_a_server_wants_to_know_is_asked_only_where_the_policy_lets_it(place: Place, question: bool) -> None:
    policy = GranularApproval(sandbox_approval=True, rules=True, mcp_elicitations=question)
    allowed = everything(default_tools_approval_mode="approve")
    async with scripted_session(
        place,
        [call("c", "mcp__everything__trigger-elicitation-request", {})],
        [say("done")],
        top=allowed,
        can_ask=True,
        approval=policy,
        sandbox="workspace-write",
    ) as (model, watched):
        seen = answers(watched, lambda _: None)
        await watched.say("go")
    assert bool(seen) == question
    said = "\n".join(texts(output_parts(model.requests[1].body, "c")))
    assert ("declined" in said or "cancelled" in said) and "Ada" not in said

"""MCP servers that die, hang, flood or lie: a line for the user, an error for the model, and no process left."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import UserError
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext, McpFailed
from codex_py.mcp.servers import McpServer
from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp.conformance_client import Host, Tokens
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import odd, requested_methods, server, tool_names
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.session import scripted_session, watched_session

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


def left_behind(place: Place) -> list[str]:
    """The command lines of processes that still have this test's directory in their environment."""
    wanted = str(place.home).encode()
    found: list[str] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            environment, line = (directory / "environ").read_bytes(), (directory / "cmdline").read_bytes()
        except OSError:
            continue
        if wanted in environment and b"CODEX_COMMAND_MARK=mcp-" in environment:
            found.append(line.replace(b"\0", b" ").decode())
    return found


async def one_call(place: Place, mode: str, **keys: Any) -> tuple[str, list[str]]:
    """A session in which the model calls a tool of such a server: what the model reads, and what the user is told."""
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", mode, **keys)) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert left_behind(place) == []
    output = output_parts(model.requests[1].body, "c")
    return output if isinstance(output, str) else "\n".join(texts(output)), warnings(watched)


@pytest.mark.parametrize(
    ("mode", "keys", "read"),
    [
        ("die_in_call", {}, "did not answer `reads`: it has ended"),
        ("hang_in_call", {"tool_timeout_sec": 0.5}, "did not answer `reads`: no answer within 0.5 s"),
        ("huge_answer", {}, "did not answer `reads`: its answer is over 16 MiB"),
        ("huge_without_end", {}, "did not answer `reads`: its answer is over 16 MiB"),
        ("flood", {}, "did not answer `reads`: it sent more than anybody asked for, and was stopped"),
        ("refuses", {}, "did not answer `reads`: the disk is full"),
        ("junk", {}, "reads of "),
        ("stays", {}, "reads of "),
    ],
)
async def test_a_server_that_fails_in_a_call_is_an_error_the_model_reads(
    place: Place, mode: str, keys: dict[str, Any], read: str
) -> None:
    output, warnings = await one_call(place, mode, **keys)
    assert read in output
    assert warnings == []


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (odd("s", "crash"), "it has ended with status 1; it said: the database is on fire"),
        (odd("s", "hang", startup_timeout_sec=0.3), "it did not start within 0.3 s (`startup_timeout_sec`)"),
        (server("s", command="no-such-program"), "cannot start `no-such-program`: no such file or directory"),
        (server("s", command="true", cwd="/no/such/place"), "there is no directory `/no/such/place` (`cwd`)"),
        (server("s", url="http://127.0.0.1:9/mcp"), "connection refused; is it running?"),
        (server("s", url="https://x.invalid/mcp", bearer_token_env_var="NOT_SET"), "`NOT_SET` is not set"),
    ],
)
async def test_a_server_that_does_not_start_is_one_warning(place: Place, table: str, reason: str) -> None:
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")], [say("more")]) as model:
        async with watched_session(place, model, table) as watched:
            await watched.say("go")
            await watched.say("more")
    [warning] = warnings(watched)
    assert warning.startswith("the MCP server `s` is not available: ")
    assert reason in warning
    assert model.requests[1].output_of("c").startswith("the MCP server `s` is not available: ")
    assert left_behind(place) == []


async def test_a_call_over_http_that_hangs_holds_up_neither_another_nor_the_end(place: Place) -> None:
    calls = [call("c1", "mcp__s__hangs", {}), call("c2", "mcp__s__whoami", {})]
    with McpOverHttp() as remote, FakeResponses(calls, [say("done")]) as model:
        async with watched_session(place, model, server("s", url=remote.url, tool_timeout_sec=0.5)) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("c1").endswith("did not answer `hangs`: no answer within 0.5 s")
    assert texts(output_parts(model.requests[1].body, "c2")) == ["nobody"]


async def test_a_call_over_http_that_fails_says_why_and_the_next_one_has_a_new_session(place: Place) -> None:
    names = ["huge", "forgets", "whoami"]
    calls = [[call(name, f"mcp__s__{name}", {})] for name in names]
    with McpOverHttp() as remote, FakeResponses(*calls, [say("done")]) as model:
        async with watched_session(place, model, server("s", url=remote.url)) as watched:
            await watched.say("go")
    body = model.requests[3].body
    assert [output_parts(body, name) for name in names[:2]] == [
        "the MCP server `s` did not answer `huge`: its answer is over 16 MiB",
        "the MCP server `s` did not answer `forgets`: Session terminated (HTTP 404)",
    ]
    assert texts(output_parts(body, "whoami")) == ["nobody"]
    assert [one.get("method") for _, _, one in remote.requests].count("initialize") == 2


async def test_a_server_that_died_is_started_again_for_the_next_calls_once(place: Place, tmp_path: Path) -> None:
    lists = [call("c2", "list_mcp_resources", {"server": "s"}), call("c3", "list_mcp_resource_templates", {})]
    calls = [[call("c1", "mcp__s__reads", {})], lists, [say("done")]]
    with FakeResponses(*calls) as model:
        async with watched_session(place, model, odd("s", "die_in_call", f"log={tmp_path / 'log'}")) as watched:
            await watched.say("go")
    assert model.requests[1].output_of("c1").endswith("it has ended with status 9")
    assert model.requests[2].output_of("c2") == '{"server":"s","resources":[]}'
    assert requested_methods(tmp_path / "log").count("initialize") == 2
    # It knows no templates at all, which is no failure.
    assert model.requests[2].output_of("c3") == '{"resourceTemplates":[]}'


async def test_a_lost_connection_is_made_again_once_for_all_who_wait(tmp_path: Path) -> None:
    place = McpContext(home=tmp_path, cwd=tmp_path, env={}, version="1", tokens=Tokens(), mark={})
    with McpOverHttp() as remote:
        connections = McpConnections([McpServer("s", url=remote.url)], place, Host(tmp_path))
        link = await connections.link("s")
        with pytest.raises(McpFailed):
            await link.call_tool("forgets", {}, lambda _: None)
        links = await asyncio.gather(*(connections.link("s") for _ in range(3)))
        await connections.close()
    assert len({id(one) for one in links} - {id(link)}) == 1
    assert [one.get("method") for _, _, one in remote.requests].count("initialize") == 2


async def test_a_session_does_not_begin_without_a_required_server(place: Place) -> None:
    with FakeResponses() as model, pytest.raises(UserError, match="it has ended with status 1"):
        async with watched_session(place, model, odd("s", "crash", required=True)):
            pass
    assert left_behind(place) == []


async def test_the_first_request_of_a_session_has_the_tools_of_a_required_server(place: Place) -> None:
    async with scripted_session(place, [say("done")], top=odd("s", "good", required=True)) as (model, watched):
        await watched.say("go")
    assert tool_names(model.requests[0].body)[-1] == "mcp__s__reads"


async def test_what_a_server_offers_is_cut_to_size(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, odd("a", "many") + odd("b", "large_schema")) as watched:
            await watched.say("one")
            await watched.say("two")
    tools = model.requests[1].body["tools"]
    assert len([one for one in tools if one["name"].startswith("mcp__a__")]) == 128
    large = [one for one in tools if one["name"].startswith("mcp__b__")]
    assert [len(one["description"].encode()) for one in large] == [4096] * 3
    assert all(one["parameters"] == {"type": "object", "properties": {}, "additionalProperties": True} for one in large)
    assert "MCP server `a`: 872 of its 1000 tools are left out: at most 128 are used" in warnings(watched)


async def test_leaving_waits_a_moment_for_servers_and_kills_what_is_deaf(place: Place, tmp_path: Path) -> None:
    logs = [tmp_path / f"log{number}" for number in range(3)]
    tables = "".join(odd(f"s{number}", "deaf", f"beats={log}") for number, log in enumerate(logs))
    async with scripted_session(place, [say("done")], top=tables) as (_, watched):
        await watched.say("go")
    assert left_behind(place) == []
    # Each writes a hundred times a second, from when its input ends until it is killed.
    assert all(5 < log.stat().st_size < 100 for log in logs)


async def test_an_interrupted_call_is_cancelled_at_its_server(place: Place, tmp_path: Path) -> None:
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "hang_in_call")) as watched:
            watched.on(events.McpCallProgress, watched.session.interrupt)
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnInterrupted)
            await watched.say("again")
    assert model.requests[1].output_of("c") == "aborted"
    assert left_behind(place) == []

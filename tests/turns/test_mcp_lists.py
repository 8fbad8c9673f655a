"""Which tools of MCP servers a request carries, from the first one on: the same to the byte, and only ever more."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.build import SessionRequest, open_session
from codex_py.protocol import events
from codex_py.protocol.ops import TextInput, UserTurn
from tests.support.fake_responses import FakeResponses, call, fake_model, item, say
from tests.support.home import Place
from tests.support.mcp_servers import everything, learn, odd, server, tool_names
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.session import scripted_session, watched_session

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


async def test_the_first_request_of_a_later_session_has_the_tools_of_a_known_server(place: Place) -> None:
    tables = odd("b", "good") + everything()
    with fake_model(place, [say("one")], [say("two")], excuse={"threads"}, top=tables) as model:
        learn(place, "everything", "b")
        for text in ("first", "second"):
            async with watched_session(place, model, tables) as watched:
                await watched.say(text)
    names = tool_names(model.requests[0].body)
    shown = names[names.index(RESOURCES[0]) :]
    assert shown[:3] == RESOURCES
    assert shown[3:6] == ["mcp__b__destroys", "mcp__b__plain", "mcp__b__reads"]
    assert shown[6] == "mcp__everything__echo"
    assert shown[6:] == sorted(shown[6:])
    assert model.requests[0].part("tools") == model.requests[1].part("tools")


async def test_a_server_that_is_switched_off_adds_nothing(place: Place) -> None:
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, odd("off", "crash", enabled=False, required=True)) as watched:
            await watched.say("first")
    assert not [name for name in tool_names(model.requests[0].body) if "mcp" in name]
    assert warnings(watched) == []


@pytest.mark.parametrize("can_ask", [False, True])
async def test_the_first_request_waits_for_a_server_never_met_and_says_so(
    place: Place, tmp_path: Path, can_ask: bool
) -> None:
    # It answers nobody before the user has been shown the line.
    gate = tmp_path / "gate"
    tables = odd("new", "good", f"gate={gate}") + odd("known", "good")
    with fake_model(place, [say("one")], [say("two")], top=tables) as model:
        learn(place, "known")
        async with watched_session(place, model, tables, can_ask=can_ask) as watched:
            watched.on(events.Warned, gate.touch)
            await watched.say("first")
            await watched.say("second")
    first, second = (tool_names(request.body) for request in model.requests)
    shown = [f"mcp__{name}__{tool}" for name in ("known", "new") for tool in ("destroys", "plain", "reads")]
    assert first[-6:] == shown
    assert second == first
    assert watched.warnings == ["waiting for the MCP server `new`, not used before: 10 s at most"]


async def test_the_first_request_waits_ten_seconds_and_the_turn_goes_on(place: Place) -> None:
    # A wait without a limit would never end: nor does the server's start.
    tables = odd("never", "hang", startup_timeout_sec=3600)
    async with scripted_session(place, [say("one")], [say("two")], top=tables) as (model, watched):
        assert isinstance(await watched.say("first"), events.TurnCompleted)
        assert isinstance(await watched.say("second"), events.TurnCompleted)
    assert tool_names(model.requests[1].body)[-3:] == RESOURCES
    assert warnings(watched) == [
        "the MCP server `never` has not answered within 10 s: the turn goes on without its tools"
        " (`codex-py mcp test never` shows why)"
    ]


async def test_a_known_server_is_not_waited_for(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text((Path(__file__).parents[1] / "support/mcp/odd_server.py").read_text())
    tables = server("s", command=sys.executable, args=[str(script), "good"], startup_timeout_sec=3600)
    with fake_model(place, [say("one")], top=tables) as model:
        learn(place, "s")
        script.write_text("import time\ntime.sleep(600)\n")
        async with watched_session(place, model, tables) as watched:
            await watched.say("first")
    assert tool_names(model.requests[0].body)[-1] == "mcp__s__reads"
    assert list(watched.of(events.Warned)) == []


async def test_what_a_known_server_has_changed_counts_from_the_next_session(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    text = (Path(__file__).parents[1] / "support/mcp/odd_server.py").read_text()
    script.write_text(text)
    table = server("s", command=sys.executable, args=[str(script), "good"])
    with FakeResponses(
        [say("one")], [call("c", "mcp__s__plain", {})], [say("two")], [say("three")], excuse={"threads"}
    ) as model:
        async with watched_session(place, model, table) as watched:
            await watched.say("learn it")
        script.write_text(text.replace("reads,plain,destroys", "reads,newer"))
        async with watched_session(place, model, table) as watched:
            await watched.say("go")
        assert warnings(watched) == [
            "the tools of the MCP server `s` are not what they were (new: `newer`; gone: `destroys`, `plain`);"
            " the model is shown that from the next session on"
        ]
        async with watched_session(place, model, table) as watched:
            await watched.say("again")
    changed, after, later = model.requests[1], model.requests[2], model.requests[3]
    assert tool_names(changed.body)[-3:] == ["mcp__s__destroys", "mcp__s__plain", "mcp__s__reads"]
    assert after.output_of("c") == "the MCP server `s` has no tool `plain` now"
    assert tool_names(later.body)[-2:] == ["mcp__s__newer", "mcp__s__reads"]


async def test_a_changed_list_is_appended_at_the_next_turn(place: Place) -> None:
    # The server answers one thing after the other: after the second call the new list has been asked for and is in.
    script = [[call("c1", "mcp__s__reads", {})], [say("two")], [call("c2", "mcp__s__reads", {})], [say("three")]]
    with FakeResponses([say("one")], *script, [say("four")]) as model:
        async with watched_session(place, model, odd("s", "changes")) as watched:
            for text in ("learn it", "go", "once more", "again"):
                await watched.say(text)
    before, after = tool_names(model.requests[2].body), tool_names(model.requests[5].body)
    assert after == [*before, "mcp__s__later"]


async def test_a_provider_that_knows_namespaces_gets_one_for_each_server(place: Place) -> None:
    named = {"type": "function_call", "call_id": "c", "name": "reads", "namespace": "mcp__my_odd", "arguments": "{}"}
    with FakeResponses([say("one")], [item(named)], [say("two")], excuse={"threads"}) as model:
        place.use_model(model.base_url, odd("my-odd", "good"))
        for text in ("learn it", "go"):
            await turn_with_openai(place.with_env(OPENAI_API_KEY="sk-test"), model.base_url, text)
    space = model.requests[1].body["tools"][-1]
    assert (space["type"], space["name"]) == ("namespace", "mcp__my_odd")
    assert [tool["name"] for tool in space["tools"]] == ["destroys", "plain", "reads"]
    assert all(tool["strict"] is False and tool["type"] == "function" for tool in space["tools"])
    assert texts(output_parts(model.requests[2].body, "c"))[0].startswith("reads of ")


async def turn_with_openai(place: Place, url: str, text: str) -> None:
    """One session with the built-in provider at another address."""
    overrides = ('model_provider="openai"', f'openai_base_url="{url}"')
    loaded = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env, overrides=overrides))
    request = SessionRequest(
        loaded=loaded, home=place.codex_home, cwd=place.repo, env=place.env, originator="test", approval="never"
    )
    async with open_session(request) as session:
        await session.submit(UserTurn((TextInput(text),)))

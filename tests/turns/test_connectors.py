"""Connectors: tools that the model is shown once the user names what they belong to, and never before."""

from __future__ import annotations

import asyncio

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Steer, TextInput
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp_servers import learn, odd, tool_names
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED

TWO = "connectors=issue/conn_1/Linear Tracker,note/conn_2/Notes"
TABLE = odd("s", "good", "tools=issue,note,reads", TWO)


def add_skill(place: Place, name: str, body: str = "") -> None:
    directory = place.codex_home / "skills" / name
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: a skill\n---\nThe body of {name}. {body}\n")


def known(place: Place, table: str = TABLE) -> str:
    """A configuration whose server was met before."""
    place.configure(table)
    learn(place, "s")
    return NO_BUNDLED + table


@pytest.mark.parametrize("mention", ["$linear-tracker", "$Linear-Tracker: go", "[$x](app://conn_1)"])
async def test_the_tools_of_a_connector_are_appended_when_it_is_named_and_stay(place: Place, mention: str) -> None:
    top = known(place)
    async with scripted_session(place, [say("one")], [say("two")], [say("three")], top=top) as (model, watched):
        await watched.say("hello")
        await watched.say(f"look at {mention}")
        await watched.say("go on")
    before, named, after = (request.body["tools"] for request in model.requests)
    assert tool_names(model.requests[0].body)[-1] == "mcp__s__reads"
    assert named[: len(before)] == before
    assert [tool["name"] for tool in named[len(before) :]] == ["mcp__s__issue"]
    assert after == named
    assert warnings(watched) == []


async def test_a_named_connector_is_shown_in_the_first_request_and_its_tools_can_be_called(place: Place) -> None:
    top = known(place)
    with FakeResponses([call("c", "mcp__s__issue", {"text": "hi"})], [say("done")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("$linear-tracker go")
    assert texts(output_parts(model.requests[1].body, "c"))[0].endswith("said hi")


async def test_a_tool_of_a_connector_nobody_named_is_not_called(place: Place) -> None:
    top = known(place)
    async with scripted_session(place, [call("c", "mcp__s__issue", {})], [say("done")], top=top) as (model, watched):
        await watched.say("hello")
    output = output_parts(model.requests[1].body, "c")
    assert output == "call refused: the user has not asked for the connector of `issue`"


async def test_a_name_that_a_skill_and_a_connector_share_means_neither(place: Place) -> None:
    top = known(place)
    add_skill(place, "notes")
    async with scripted_session(place, [say("one")], [say("two")], [say("three")], top=top) as (model, watched):
        await watched.say("use $notes")
        plain = warnings(watched)
        await watched.say("use [$notes](app://conn_2)")
        await watched.say(f"use [$notes]({place.codex_home}/skills/notes/SKILL.md)")
    assert plain == [
        "`$notes` is the name of a connector and a skill and asks for none: for a connector write"
        f" `[$notes](app://conn_2)`, for the skill `[$notes]({place.codex_home}/skills/notes/SKILL.md)`"
    ]
    bodies = [request.body for request in model.requests]
    assert ["mcp__s__note" in tool_names(body) for body in bodies] == [False, True, True]
    assert ["The body of notes." in str(body["input"]) for body in bodies] == [False, False, True]
    assert [use.name for use in watched.of(events.SkillUsed)] == ["notes"]


async def test_a_link_to_an_unknown_connector_is_reported_and_changes_nothing(place: Place) -> None:
    top = known(place)
    async with scripted_session(place, [say("one")], top=top) as (model, watched):
        await watched.say("use [$x](app://nowhere)")
    assert warnings(watched) == ["no MCP server offers the connector `nowhere` yet"]
    assert tool_names(model.requests[0].body)[-1] == "mcp__s__reads"


async def test_the_connectors_that_a_named_skill_links_to_are_shown_as_those_of_a_message(place: Place) -> None:
    top = known(place)
    add_skill(place, "triage", "Use [$tracker](app://conn_1) and `app://conn_2`.")
    with FakeResponses([say("one")], [call("c", "mcp__s__issue", {"text": "hi"})], [say("two")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("hello")
            await watched.say("$triage it")
    before, named, _ = (tool_names(request.body) for request in model.requests)
    assert named == [*before, "mcp__s__issue"]
    assert texts(output_parts(model.requests[2].body, "c"))[0].endswith("said hi")
    assert warnings(watched) == []


async def test_connectors_are_made_and_switched_off_by_the_configuration(place: Place) -> None:
    apps = (
        '\n[apps.conn_1]\nenabled = false\n[apps.mine]\nname = "My Notes"\nserver = "s"\n'
        'server_tools = ["note", "reads"]\n[apps.mine.tools.reads]\nenabled = false\n'
    )
    top = known(place, odd("s", "good", "tools=issue,note,plain,reads", "connectors=issue/conn_1/Linear Tracker"))
    with FakeResponses([say("one")], [call("c", "mcp__s__issue", {})], [say("three")]) as model:
        async with watched_session(place, model, top + apps) as watched:
            await watched.say("hello")
            await watched.say("[$a](app://conn_1) and $my-notes")
    first, second = (tool_names(request.body) for request in model.requests[:2])
    assert first[-1] == "mcp__s__plain"
    assert second == [*first, "mcp__s__note"]
    assert "call refused" in output_parts(model.requests[2].body, "c")


async def test_the_feature_apps_switches_all_connectors_off(place: Place) -> None:
    top = known(place)
    async with scripted_session(place, [say("one")], top=f"{top}\n[features]\napps = false\n") as (model, watched):
        await watched.say("use [$notes](app://conn_2) and $linear-tracker")
    assert not {"mcp__s__note", "mcp__s__issue"} & set(tool_names(model.requests[0].body))


@pytest.mark.parametrize(("mode", "ok"), [("approve", True), ("prompt", False)])
async def test_calls_of_a_connector_are_approved_as_the_configuration_says_of_it(
    place: Place, mode: str, ok: bool
) -> None:
    top = known(place) + f'\n[apps.conn_1]\ndefault_tools_approval_mode = "{mode}"\n'
    with FakeResponses([call("c", "mcp__s__issue", {})], [say("done")]) as model:
        async with watched_session(place, model, top, sandbox="read-only") as watched:
            await watched.say("use $linear-tracker")
    assert isinstance(output_parts(model.requests[1].body, "c"), list) == ok


async def test_a_resumed_session_shows_the_connectors_that_were_named(place: Place) -> None:
    top = known(place)
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("use $linear-tracker")
            thread = watched.session.thread_id
        async with watched_session(place, model, top, resume=thread) as watched:
            await watched.say("go on")
    assert model.requests[1].body["tools"] == model.requests[0].body["tools"]


async def test_a_connector_named_beside_a_turn_is_there_in_its_next_request(place: Place) -> None:
    top = known(place)
    with FakeResponses([call("c", "exec_command", {"cmd": "true"})], [say("done")]) as model:
        async with watched_session(place, model, top) as watched:
            steer = Steer((TextInput("and look at $linear-tracker"),))

            def say_more() -> None:
                watched.tasks.append(asyncio.ensure_future(watched.session.submit(steer)))

            watched.on(events.CommandStarted, say_more)
            await watched.say("go")
    first, second = (request.body["tools"] for request in model.requests)
    assert second[: len(first)] == first
    assert [tool["name"] for tool in second[len(first) :]] == ["mcp__s__issue"]


async def test_a_connector_of_a_server_never_met_is_shown_when_it_comes(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("two")], top=NO_BUNDLED + TABLE) as (model, watched):
        await watched.say("use [$x](app://conn_1)")
        await watched.say("go on")
    assert tool_names(model.requests[1].body)[-2:] == ["mcp__s__issue", "mcp__s__reads"]

"""MCP servers nobody here wrote, in a session: what the model is shown, what its calls come to, and what is asked."""

from __future__ import annotations

import base64
import json

import pytest

from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.questions import ChoiceQuestion, Question
from tests.support.fake_responses import FakeResponses, call, repeat, say
from tests.support.home import Place
from tests.support.mcp_servers import everything, everything_over_http, filesystem, odd, server
from tests.support.mcp_turns import answers, output_parts, texts
from tests.support.session import scripted_session, watched_session

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


async def test_a_call_reaches_a_server_over_stdio_and_its_answer_the_model(place: Place) -> None:
    calls = [
        call("c1", "mcp__everything__echo", {"message": "hello"}),
        call("c2", "mcp__everything__get-sum", {"a": 2, "b": 3}),
    ]
    async with scripted_session(place, calls, [say("done")], top=everything()) as (model, watched):
        ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    body = model.requests[1].body
    assert texts(output_parts(body, "c1")) == ["Echo: hello"]
    assert texts(output_parts(body, "c2")) == ["The sum of 2 and 3 is 5."]
    started, finished = watched.of(events.McpCallStarted)[0], watched.of(events.McpCallFinished)[0]
    assert (started.server, started.tool, started.arguments) == ("everything", "echo", {"message": "hello"})
    assert (finished.status, finished.output, finished.error) == ("completed", "Echo: hello", None)
    assert finished.result == {"content": [{"type": "text", "text": "Echo: hello"}], "structured_content": None}


async def test_settings_that_name_no_tool_of_a_running_server_are_reported_once(place: Place) -> None:
    table = everything(
        enabled_tools=["echo", "get-sun"], disabled_tools=["nosuch"], tools={"ehco": {"approval_mode": "approve"}}
    )
    async with scripted_session(place, repeat([say("done")]), top=table) as (_, watched):
        await watched.say("go")
        await watched.say("go on")
    found = [event for event in watched.warnings if "no such tool" in event]
    missing = "and the MCP server `everything` has no such tool"
    assert found == [
        f"`mcp_servers.everything.enabled_tools` names `get-sun`, {missing}; did you mean `get-sum`?",
        f"`mcp_servers.everything.disabled_tools` names `nosuch`, {missing};"
        " `codex-py mcp test everything` lists its tools",
        f"`mcp_servers.everything.tools` names `ehco`, {missing}; did you mean `echo`?",
    ]


async def test_a_call_reaches_a_server_over_http(place: Place) -> None:
    with everything_over_http(place) as url:
        table = server("web", url=url)
        with FakeResponses([call("c1", "mcp__web__echo", {"message": "hello"})], [say("done")]) as model:
            async with watched_session(place, model, table) as watched:
                await watched.say("go")
    assert texts(output_parts(model.requests[1].body, "c1")) == ["Echo: hello"]


async def test_files_of_another_program_are_read_through_its_server(place: Place) -> None:
    place.write("note.txt", "remember the milk\n")
    arguments = {"path": str(place.repo / "note.txt")}
    with FakeResponses([call("c1", "mcp__files__read_text_file", arguments)], [say("done")]) as model:
        async with watched_session(place, model, filesystem(place.repo)) as watched:
            await watched.say("go")
    assert "remember the milk" in texts(output_parts(model.requests[1].body, "c1"))[0]


async def test_pictures_and_structured_answers_are_shown_to_the_model(place: Place) -> None:
    calls = [
        call("c1", "mcp__everything__get-tiny-image", {}),
        call("c2", "mcp__everything__get-structured-content", {"location": "Chicago"}),
    ]
    async with scripted_session(place, calls, [say("done")], top=everything()) as (model, watched):
        await watched.say("go")
    body = model.requests[1].body
    [picture] = [part for part in output_parts(body, "c1") if part["type"] == "input_image"]
    head, _, encoded = picture["image_url"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(encoded).startswith(b"\x89PNG")
    [structured] = texts(output_parts(body, "c2"))
    assert set(json.loads(structured)) == {"temperature", "conditions", "humidity"}


async def test_what_a_server_asks_the_user_becomes_questions(place: Place) -> None:
    async with scripted_session(
        place,
        [call("c", "mcp__everything__trigger-elicitation-request", {})],
        [say("done")],
        top=everything(),
        can_ask=True,
        approval="on-request",
        sandbox="workspace-write",
    ) as (model, watched):

        def reply(question: Question) -> str:
            assert isinstance(question, ChoiceQuestion)
            labels = [choice.label for choice in question.options]
            if "legal name" in question.question:
                return "Ada Lovelace"
            return "Leave out" if "Leave out" in labels else labels[0]

        seen = answers(watched, reply)
        await watched.say("go")
    assert seen
    assert all(isinstance(one, ChoiceQuestion) and "everything" in one.header for one in seen)
    assert "Ada Lovelace" in "\n".join(texts(output_parts(model.requests[1].body, "c")))


async def test_resources_are_listed_and_read(place: Place) -> None:
    async with scripted_session(
        place,
        [
            call("c1", "list_mcp_resources", {"server": "everything"}),
            call("c2", "list_mcp_resource_templates", {}),
            call(
                "c3",
                "read_mcp_resource",
                {"server": "everything", "uri": "demo://resource/static/document/features.md"},
            ),
            call("c4", "read_mcp_resource", {"server": "nope", "uri": "x://y"}),
            call("c5", "read_mcp_resource", {"server": "everything", "uri": "demo://resource/dynamic/blob/1"}),
        ],
        [say("done")],
        top=everything(),
    ) as (model, watched):
        await watched.say("go")
    request = model.requests[1]
    assert '"uri":"demo://resource/static/document/features.md"' in request.output_of("c1")
    assert '"resourceTemplates":[{"server":"everything"' in request.output_of("c2")
    assert len(texts(output_parts(request.body, "c3"))[0]) > 200
    assert request.output_of("c4") == "cannot read `x://y` of `nope`: there is no MCP server `nope`"
    assert texts(output_parts(request.body, "c5"))[0].startswith("Resource 1: This is a base64 blob created at ")


async def test_prompts_are_commands_that_become_a_text(place: Place) -> None:
    async with scripted_session(place, [say("one")], top=everything()) as (_, watched):
        await watched.say("go")
        servers = watched.session.mcp
        found = {command.name: command for command in servers.prompts()}
        command = found["mcp__everything__args-prompt"]
        text = await servers.fill_prompt(command, 'Oslo state="the north"')
        with pytest.raises(UserError, match="needs `city`"):
            await servers.fill_prompt(command, "")
    assert [argument.name for argument in command.arguments] == ["city", "state"]
    assert "Oslo, the north" in text


async def test_progress_is_reported(place: Place) -> None:
    arguments = {"duration": 0.6, "steps": 3}
    async with scripted_session(
        place,
        [call("c", "mcp__everything__trigger-long-running-operation", arguments)],
        [say("done")],
        top=everything(),
    ) as (_, watched):
        await watched.say("go")
    result = watched.of(events.McpCallProgress)
    assert [(one.done, one.total) for one in result] == [(1, 3), (2, 3), (3, 3)]


async def test_a_child_gets_only_what_its_configuration_names(place: Place) -> None:
    place = place.with_env(MY_TOKEN="t0ken-value-1", OTHER_SECRET="s3cret-value-2")
    table = everything(env_vars=["MY_TOKEN"], env={"LEVEL": "info"})
    with FakeResponses([call("c", "mcp__everything__get-env", {})], [say("done")]) as model:
        async with watched_session(place, model, table) as watched:
            await watched.say("go")
    shown = texts(output_parts(model.requests[1].body, "c"))[0]
    names = set(json.loads(shown))
    assert names - {"CODEX_COMMAND_MARK"} == {"HOME", "LANG", "PATH", "TERM", "MY_TOKEN", "LEVEL"}
    assert "t0ken-value-1" not in shown


async def test_a_server_that_may_asks_the_model(place: Place) -> None:
    ask = call("c1", "mcp__everything__trigger-sampling-request", {"prompt": "name a colour", "maxTokens": 20})
    # What a server asks is a conversation of its own.
    with FakeResponses([ask], [say("teal")], [say("done")], excuse={"threads"}) as model:
        async with watched_session(place, model, everything(sampling=True)) as watched:
            await watched.say("go")
    first, question, last = (request.body for request in model.requests)
    assert "teal" in texts(output_parts(last, "c1"))[0]
    assert (question["tools"], len(question["input"])) == ([], 1)
    assert "name a colour" in str(question["input"])
    assert "name a colour" not in str(first["input"])


async def test_a_server_that_may_not_asks_the_model_in_vain(place: Place) -> None:
    with FakeResponses([call("c1", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "samples")) as watched:
            await watched.say("go")
    [answer] = texts(output_parts(model.requests[1].body, "c1"))
    assert '"error"' in answer
    assert "what is the secret?" not in str(model.requests[1].body["input"])

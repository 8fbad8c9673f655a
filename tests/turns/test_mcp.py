"""MCP servers nobody here wrote, in a session: what the model is shown, what its calls come to, and what is asked."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from typing import Any

from codex_py.protocol import events
from codex_py.protocol.ops import Answer
from codex_py.protocol.questions import ChoiceQuestion, Question
from tests.support.fake_responses import FakeResponses, Json, call, say
from tests.support.home import Place
from tests.support.mcp_servers import (
    everything,
    everything_over_http,
    filesystem,
    server,
)
from tests.support.session import Watched, watched_session

RESOURCES = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]


def warnings(watched: Watched) -> list[str]:
    return [warned.message for warned in watched.of(events.Warned)]


def answers(watched: Watched, reply: Callable[[Question], str | None]) -> list[Question]:
    """Answer every question; the list fills with them."""
    seen: list[Question] = []

    def note(event: events.Event) -> None:
        if isinstance(event, events.QuestionAsked):
            seen.append(event.question)
            op = Answer(event.question.id, reply(event.question))
            watched.tasks.append(asyncio.ensure_future(watched.session.submit(op)))

    watched.session.subscribe(note)
    return seen


def texts(output: Any) -> list[str]:
    """The texts of an output that is a list of parts, the line with the time left out."""
    assert output[0]["text"].startswith("Wall time: ")
    return [part["text"] for part in output[1:] if part["type"] == "input_text"]


def output_parts(body: Json, call_id: str) -> Any:
    return next(one["output"] for one in body["input"] if one.get("call_id") == call_id and "output" in one)


async def test_a_call_reaches_a_server_over_stdio_and_its_answer_the_model(place: Place) -> None:
    calls = [
        call("c1", "mcp__everything__echo", {"message": "hello"}),
        call("c2", "mcp__everything__get-sum", {"a": 2, "b": 3}),
    ]
    with FakeResponses(calls, [say("done")]) as model:
        async with watched_session(place, model, everything()) as watched:
            ended = await watched.say("go")

    assert isinstance(ended, events.TurnCompleted)
    body = model.requests[1].body
    assert texts(output_parts(body, "c1")) == ["Echo: hello"]
    assert texts(output_parts(body, "c2")) == ["The sum of 2 and 3 is 5."]
    started, finished = watched.of(events.McpCallStarted)[0], watched.of(events.McpCallFinished)[0]
    assert (started.server, started.tool, started.arguments) == ("everything", "echo", {"message": "hello"})
    assert (finished.status, finished.output, finished.error) == ("completed", "Echo: hello", None)
    assert finished.result == {"content": [{"type": "text", "text": "Echo: hello"}], "structured_content": None}


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
    with FakeResponses(calls, [say("done")]) as model:
        async with watched_session(place, model, everything()) as watched:
            await watched.say("go")
    body = model.requests[1].body
    [picture] = [part for part in output_parts(body, "c1") if part["type"] == "input_image"]
    head, _, encoded = picture["image_url"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(encoded).startswith(b"\x89PNG")
    [structured] = texts(output_parts(body, "c2"))
    assert set(json.loads(structured)) == {"temperature", "conditions", "humidity"}


async def test_what_a_server_asks_the_user_becomes_questions(place: Place) -> None:
    with FakeResponses([call("c", "mcp__everything__trigger-elicitation-request", {})], [say("done")]) as model:
        async with watched_session(
            place, model, everything(), can_ask=True, approval="on-request", sandbox="workspace-write"
        ) as watched:

            def reply(question: Question) -> str:
                assert isinstance(question, ChoiceQuestion)
                labels = [choice.label for choice in question.options]
                return (
                    "Ada Lovelace"
                    if "String" in question.question or "name" in question.question
                    else ("Leave out" if "Leave out" in labels else labels[0])
                )

            seen = answers(watched, reply)
            await watched.say("go")
    assert seen
    assert all(isinstance(one, ChoiceQuestion) and "everything" in one.header for one in seen)
    assert "Ada Lovelace" in "\n".join(texts(output_parts(model.requests[1].body, "c")))


async def test_resources_are_listed_and_read(place: Place) -> None:
    with FakeResponses(
        [
            call("c1", "list_mcp_resources", {"server": "everything"}),
            call("c2", "list_mcp_resource_templates", {}),
            call(
                "c3",
                "read_mcp_resource",
                {"server": "everything", "uri": "demo://resource/static/document/features.md"},
            ),
            call("c4", "read_mcp_resource", {"server": "nope", "uri": "x://y"}),
        ],
        [say("done")],
    ) as model:
        async with watched_session(place, model, everything()) as watched:
            await watched.say("go")
    request = model.requests[1]
    assert '"uri":"demo://resource/static/document/features.md"' in request.output_of("c1")
    assert '"resourceTemplates":[{"server":"everything"' in request.output_of("c2")
    assert len(texts(output_parts(request.body, "c3"))[0]) > 200
    assert request.output_of("c4") == "there is no MCP server `nope`"


async def test_prompts_are_listed_and_filled_in(place: Place) -> None:
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, everything()) as watched:
            await watched.say("go")
            servers = watched.session.mcp
            assert servers is not None
            found = {prompt.name: prompt for _, prompt in servers.prompts()}
            text = await servers.prompt_text("everything", "args-prompt", {"city": "Oslo"})
    assert [argument.name for argument in found["args-prompt"].arguments] == ["city", "state"]
    assert "Oslo" in text


async def test_progress_is_told(place: Place) -> None:
    arguments = {"duration": 0.6, "steps": 3}
    with FakeResponses(
        [call("c", "mcp__everything__trigger-long-running-operation", arguments)], [say("done")]
    ) as model:
        async with watched_session(place, model, everything()) as watched:
            await watched.say("go")
    told = watched.of(events.McpCallProgress)
    assert [(one.done, one.total) for one in told] == [(1, 3), (2, 3), (3, 3)]


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

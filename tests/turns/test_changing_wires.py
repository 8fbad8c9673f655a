"""One session over three APIs, each with a server that refuses what is not in its own."""

from __future__ import annotations

import json
from typing import Any

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from tests.support import fake_chat, fake_messages
from tests.support.fake_chat import Dialect, FakeChat
from tests.support.fake_messages import FakeMessages
from tests.support.fake_responses import FakeResponses, call, custom_call, reasoning, say
from tests.support.home import Place
from tests.support.session import watched_session

PATCH = "*** Begin Patch\n*** Add File: {}.txt\n+{}\n*** End Patch"


def shell(call_id: str, command: str) -> tuple[str, str, dict[str, Any]]:
    return call_id, "exec_command", {"cmd": command, "login": False}


def responses(*script: Any) -> FakeResponses:
    # The items of other servers are in this history, and it is not the first of its requests.
    return FakeResponses(*script, excuse={"replay", "prefix", "head", "tools"})


async def turn(place: Place, model: Any, wire: str, name: str, thread: str | None) -> str:
    """One turn of the session on a server; the id of the session."""
    provider: dict[str, Any] = {"name": f"server of {wire}", "wire_api": wire}
    async with watched_session(place, model, overrides=(f'model="{name}"',), resume=thread, **provider) as watched:
        assert isinstance(await watched.say(f"go on with {wire}"), events.TurnCompleted)
        return watched.session.thread_id


async def test_a_session_changes_between_three_apis(place: Place) -> None:
    first = [
        reasoning("sealed by responses"),
        custom_call("c1", "apply_patch", PATCH.format("one", "1")),
        call("c2", "exec_command", {"cmd": "echo two", "login": False}),
    ]
    with responses(first, [say("first")]) as model:
        thread = await turn(place, model, "responses", "gpt-5.5", None)
    thinking = fake_messages.thinks("signed by messages")
    with FakeMessages(
        fake_messages.answer(thinking, fake_messages.uses(*shell("toolu_1", "echo three"))),
        fake_messages.answer(fake_messages.says("second")),
    ) as model:
        await turn(place, model, "messages", "claude-opus-5-5", thread)
        assert "sealed by responses" not in json.dumps(model.bodies)
    dialect = Dialect(message_fields=frozenset({"reasoning_content"}))
    script = [
        fake_chat.answer(calls=[("p", "apply_patch", {"input": PATCH.format("two", "2")})], reasoning="by chat"),
        fake_chat.answer("third"),
    ]
    with FakeChat(*script, dialect=dialect) as model:
        await turn(place, model, "chat", "some-model", thread)
        assert "signed by messages" not in json.dumps(model.bodies)
        tools = [message for message in model.bodies[0]["messages"] if message["role"] == "tool"]
        assert [message["tool_call_id"] for message in tools] == ["c1", "c2", "toolu_1"]
    with responses([say("fourth")]) as model:
        await turn(place, model, "responses", "gpt-5.5", thread)
    [request] = model.requests
    assert [item["encrypted_content"] for item in request.input if item["type"] == "reasoning"] == [
        "sealed by responses"
    ]
    assert request.texts("assistant") == ["first", "second", "third", "fourth"][:3]
    known = {"type", "id", "role", "content", "call_id", "name", "arguments", "input", "output", "status"}
    for item in request.input:
        assert set(item) <= known | ({"summary", "encrypted_content"} if item["type"] == "reasoning" else set())
    assert (place.repo / "one.txt").read_text() == "1\n"
    assert (place.repo / "two.txt").read_text() == "2\n"


async def test_reasoning_waits_for_the_model_that_wrote_it(place: Place) -> None:
    with responses([reasoning("of the first"), say("one")]) as model:
        thread = await turn(place, model, "responses", "gpt-5.5", None)
    with responses([reasoning("of the second"), say("two")]) as model:
        await turn(place, model, "responses", "gpt-5.4", thread)
        assert [item for item in model.requests[0].input if item["type"] == "reasoning"] == []
    with responses([say("three")]) as model:
        await turn(place, model, "responses", "gpt-5.5", thread)
    found = [item["encrypted_content"] for item in model.requests[0].input if item["type"] == "reasoning"]
    assert found == ["of the first"]


async def test_what_one_provider_has_compacted_is_named_to_another(place: Place) -> None:
    sealed = {"type": "compaction", "encrypted_content": "sealed"}
    item = {"type": "response.output_item.done", "item": sealed}
    with responses([say("one")], [item]) as model:
        async with watched_session(place, model, compaction="in-band") as watched:
            await watched.say("remember the number 7")
            await watched.session.submit(Compact())
            thread = watched.session.thread_id
    with FakeChat(fake_chat.answer("two")) as model:
        await turn(place, model, "chat", "some-model", thread)
    text = json.dumps(model.bodies[0]["messages"])
    assert "sealed" not in text
    assert "compacted by another provider" in text
    assert "remember the number 7" in text

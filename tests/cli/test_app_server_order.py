"""Items and turns of `codex-py app-server` come in order, and each to its end, whatever comes in between."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.agents import cast, spawn, wait
from tests.support.app_client import AppClient, Json, app_server, command, deciding, refusal
from tests.support.fake_responses import (
    FakeResponses,
    call,
    custom_call,
    cut,
    delta,
    fake_model,
    hang,
    reasoning,
    repeat,
    say,
)
from tests.support.home import Place
from tests.support.mcp_servers import everything

ASKING: Json = {"sandbox": "read-only", "approvalPolicy": "on-request"}
APPROVAL = "item/commandExecution/requestApproval"
OUTSIDE: Json = {"sandbox_permissions": "require_escalated", "justification": "it must"}
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"


def begin_and_be_asked(client: AppClient, place: Place) -> tuple[str, str, Json]:
    """A new thread, its turn, and the approval that the turn waits for."""
    thread = client.open(place, **ASKING)
    turn = client.begin_turn(thread, "go")
    return thread, turn, client.next_request(APPROVAL)


def begun_and_ended(client: AppClient) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The turn and the id of every item that began, and of every one that ended, in an order of their own."""
    started, ended = (client.notified(f"item/{word}") for word in ("started", "completed"))

    def places(result: Sequence[Json]) -> list[tuple[str, str]]:
        return sorted((one["turnId"], one["item"]["id"]) for one in result)

    return places(started), places(ended)


def said(client: AppClient) -> list[str]:
    return [part.get("text", part["type"]) for item in client.items("userMessage") for part in item["content"]]


def text(words: str) -> list[Json]:
    return [{"type": "text", "text": words}]


def test_an_answer_that_is_interrupted_ends_with_what_came_of_it(place: Place) -> None:
    with fake_model(place, [delta("half "), delta("of it"), hang(60)]), app_server(place) as client:
        thread = client.open(place)
        turn = client.begin_turn(thread, "go")
        client.next("item/agentMessage/delta", lambda params: params["delta"] == "of it")
        client.ask("turn/interrupt", threadId=thread, turnId=turn)
        client.ended(turn)
        client.close()

    assert [item["text"] for item in client.items("agentMessage")] == ["half of it"]
    begun, ended = begun_and_ended(client)
    assert begun == ended


def test_what_was_asked_about_and_never_begun_is_declined(place: Place) -> None:
    with (
        fake_model(place, [command("c1", "touch mark", **OUTSIDE)], [custom_call("p1", "apply_patch", PATCH)]),
        app_server(place) as client,
    ):
        thread = client.open(place, **ASKING)
        for count in (1, 2):
            turn = client.begin_turn(thread, "go")
            client.wait(lambda count=count: len(client.requests) == count)
            client.ask("turn/interrupt", threadId=thread, turnId=turn)
            client.ended(turn)
        client.close()

    assert [item["status"] for kind in ("commandExecution", "fileChange") for item in client.items(kind)] == [
        "declined",
        "declined",
    ]
    begun, ended = begun_and_ended(client)
    assert begun == ended


def test_a_command_ends_in_the_turn_it_began_in(place: Place) -> None:
    gate, answers = place.home / "gate", threading.Event()
    waits = command("c1", f"until [ -e {gate} ]; do sleep 0.01; done; echo late", yield_time_ms=250)
    with fake_model(place, [waits], [say("one")], [hang(answers), say("two")]), app_server(place) as client:
        thread = client.open(place)
        first = client.turn(thread, "first")["id"]
        second = client.begin_turn(thread, "second")
        gate.touch()
        ended = client.next("item/completed", lambda params: params["item"]["type"] == "commandExecution")
        answers.set()
        client.ended(second)
        client.close()

    assert (ended["turnId"], ended["item"]["status"], ended["item"]["aggregatedOutput"]) == (
        first,
        "completed",
        "late\n",
    )


def test_a_command_that_its_thread_leaves_behind_ends_before_that(place: Place) -> None:
    with (
        fake_model(place, [command("c1", "sleep 1000", yield_time_ms=250)], [say("one")]),
        app_server(place) as client,
    ):
        thread = client.open(place)
        client.turn(thread, "go")
        client.ask("thread/unsubscribe", threadId=thread)
        client.next("thread/closed")
        client.close()

    assert [item["status"] for item in client.items("commandExecution")] == ["failed"]
    of_thread = [one["method"] for one in client.notifications if one["params"].get("threadId") == thread]
    assert of_thread[-3:] == ["item/completed", "thread/status/changed", "thread/closed"]


@pytest.mark.parametrize(
    ("script", "texts"),
    [
        (([delta("half"), cut()], [delta("who"), cut()], [delta("whole"), say("whole")]), ["whole"]),
        # What comes instead has the number that the answer had.
        (([delta("half"), cut()], [reasoning("blob", "Thinking"), say("whole")]), ["half", "whole"]),
    ],
)
def test_an_answer_that_comes_again_is_an_item_that_ends_once(
    place: Place, script: Sequence[list[Json]], texts: list[str]
) -> None:
    with fake_model(place, *script), app_server(place) as client:
        client.turn(client.open(place), "go")
        client.close()

    begun, ended = begun_and_ended(client)
    assert (begun, len(set(ended))) == (ended, len(ended))
    assert [item["text"] for item in client.items("agentMessage")] == texts


def test_what_a_cancelled_approval_drops_is_not_reported_a_later_turn(place: Place) -> None:
    with (
        fake_model(place, [command("c1", "touch mark", **OUTSIDE)], [say("fine")]) as model,
        app_server(place) as client,
    ):
        thread, turn, request = begin_and_be_asked(client, place)
        client.ask("turn/steer", threadId=thread, expectedTurnId=turn, input=text("dropped"))
        client.reply(request, {"decision": "cancel"})
        client.ended(turn)
        client.turn(thread, "next")
        client.close()

    assert said(client) == ["go", "next"]
    assert model.requests[1].texts("user")[-1] == "next"


def test_what_cannot_be_said_takes_nothing_along_that_was(place: Place) -> None:
    with fake_model(place, [command("c1", "touch mark", **OUTSIDE)], [say("fine")]), app_server(place) as client:
        thread, turn, request = begin_and_be_asked(client, place)
        steer: Json = {"threadId": thread, "expectedTurnId": turn}
        client.ask("turn/steer", **steer, input=text("steered"))
        unread = refusal(client, "turn/steer", **steer, input=[{"type": "localImage", "path": "/no/such.png"}])
        client.reply(request, {"decision": "accept"})
        client.ended(turn)
        client.close()

    assert unread == (-32600, "cannot attach image `/no/such.png`: no such file")
    assert said(client) == ["go", "steered"]


def test_a_mention_and_the_text_behind_it_are_reported_as_they_were_said(place: Place) -> None:
    content = [{"type": "mention", "name": "app", "path": "app.py"}, *text("look at it")]
    with fake_model(place, [say("fine")]), app_server(place) as client:
        thread = client.open(place)
        client.ended(client.ask("turn/start", threadId=thread, input=content)["turn"]["id"])
        client.close()

    [message] = client.items("userMessage")
    assert [part for part in message["content"] if part["type"] == "mention"] == content[:1]
    assert [part["text"] for part in message["content"] if part["type"] == "text"] == ["look at it"]


def test_what_an_agent_asks_about_begins_and_ends_with_the_question(place: Place) -> None:
    parts: dict[str, Any] = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1")], [command("c1", "echo mine")], [say("done")]],
        "look at a": [
            [command("c1", "touch mark", **OUTSIDE)],
            [custom_call("c2", "apply_patch", PATCH)],
            [say("a is fine")],
        ],
    }
    decisions = iter(["decline", "accept"])
    with cast(parts) as model:
        place.use_model(model.base_url)
        with app_server(place, decide=lambda _: {"decision": next(decisions)}) as client:
            client.turn(client.open(place, **ASKING), "go")
            client.close()

    started = [one["item"]["id"] for one in client.notified("item/started")]
    begun, ended = begun_and_ended(client)
    question = [one["params"]["itemId"] for one in client.requests]
    assert (begun, len(set(started))) == (ended, len(started))
    assert [item["status"] for one in question for item in _ended(client) if item["id"] == one] == [
        "declined",
        "completed",
    ]


def test_an_agent_may_ask_when_the_turn_is_over(place: Place) -> None:
    parts: dict[str, Any] = {
        "go": [[spawn("s1", "look at a")], [say("done")]],
        "look at a": [[command("c1", "touch mark", **OUTSIDE)], [say("a is fine")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url)
        with app_server(place) as client:
            thread = client.open(place, **ASKING)
            client.turn(thread, "go")
            request = client.next_request(APPROVAL)
            client.reply(request, {"decision": "accept"})
            client.next("serverRequest/resolved")
            model.wait_for(4)
            status = client.ask("thread/read", threadId=thread)["thread"]["status"]
            client.close()

    assert status == {"type": "idle"}
    assert [item["status"] for item in client.items("commandExecution")] == ["completed"]
    assert (place.repo / "mark").exists()


def test_a_form_with_a_number_that_is_none_is_declined(place: Place) -> None:
    with FakeResponses([call("c", "mcp__everything__trigger-elicitation-request", {})], [say("done")]) as model:
        place.use_model(model.base_url, everything(required=True, default_tools_approval_mode="approve"))
        with app_server(place) as client:
            turn = client.begin_turn(client.open(place, approvalPolicy="on-request"), "go")
            request = client.next_request("mcpServer/elicitation/request")
            client.write(b'{"id":%d,"result":{"action":"accept","content":{"name":1e999}}}\n' % request["id"])
            assert client.ended(turn)["status"] == "completed"
            client.close()

    [item] = client.items("mcpToolCall")
    assert "decline" in str(item["result"]["content"])


def test_a_thread_is_the_same_in_capitals(place: Place) -> None:
    with fake_model(place, repeat([say("ok")])), app_server(place) as client:
        thread = client.open(place)
        assert client.turn(thread.upper(), "go")["status"] == "completed"
        numbers = [client.begin("thread/unsubscribe", threadId=thread)]
        numbers += [client.begin("thread/resume", threadId=one) for one in (thread.upper(), thread)]
        *_, last = [client.answer(number) for number in numbers]
        client.close()

    assert last["thread"]["id"] == thread


def test_a_server_that_does_not_start_holds_up_no_end(place: Place) -> None:
    slow = '[mcp_servers.slow]\ncommand = "sleep"\nargs = ["1000"]\nrequired = true\nstartup_timeout_sec = 1000\n'
    place.use_model("http://127.0.0.1:9/v1", slow)
    with app_server(place, decide=deciding()) as client:
        client.begin("thread/start", cwd=str(place.repo))
        assert client.ask("thread/loaded/list")["data"] == []
        assert client.close().status == 0


def _ended(client: AppClient) -> list[Json]:
    return [one["item"] for one in client.notified("item/completed")]

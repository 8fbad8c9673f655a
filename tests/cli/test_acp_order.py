"""Requests to `codex-py acp` that come before the ones before them are done: each has its answer, in order."""

from __future__ import annotations

import json

from tests.support.acp import Client, Json, Refused, acp, texts
from tests.support.fake_responses import FakeResponses, api_error, call, fake_model, hang, repeat, say
from tests.support.home import Place
from tests.support.hooks import entry, hook_inputs, noting, use_hooks
from tests.support.mcp_servers import everything

OUTSIDE = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "to make it"}
WAITS = call("c1", "exec_command", {"cmd": "sleep 1000", "login": False, "yield_time_ms": 30000})
LATE = 60.0
# More than are taken.
PROMPTS = 4200


def stored(place: Place, session: str) -> Json:
    return {"sessionId": session, "cwd": str(place.repo), "mcpServers": []}


def stops(client: Client, numbers: list[int]) -> list[str]:
    return [client.answer(number)["stopReason"] for number in numbers]


def ending(client: Client, number: int) -> str:
    try:
        return client.answer(number)["stopReason"]
    except Refused as refused:
        return str(refused)


def test_a_session_is_loaded_when_the_close_before_is_done(place: Place) -> None:
    use_hooks(place, SessionEnd=[entry("sleep 0.2")])
    with fake_model(place, [say("one")], [say("two")]) as model, acp(place) as client:
        session = client.open(place)
        client.prompt(session, "first")
        closed = client.begin("session/close", sessionId=session)
        loaded = client.begin("session/load", **stored(place, session))
        prompt = client.begin_prompt(session, "second")
        assert client.answer(closed) == {}
        assert "modes" in client.answer(loaded)
        assert stops(client, [prompt]) == ["end_turn"]
        client.close()

    assert model.requests[1].texts("assistant") == ["one"]


def test_a_session_that_is_closed_at_work_tells_how_its_prompts_end(place: Place) -> None:
    with fake_model(place, [WAITS], top='sandbox_mode = "danger-full-access"'), acp(place) as client:
        session = client.open(place)
        prompts = [client.begin_prompt(session, text) for text in ("wait", "and then")]
        client.wait(lambda: bool(client.calls()))
        client.ask("session/close", sessionId=session)
        assert stops(client, prompts) == ["cancelled", "cancelled"]
        client.close()

    assert [one["status"] for one in client.calls()] == ["failed"]


def test_no_prompt_that_waits_begins_when_the_client_has_gone(place: Place) -> None:
    use_hooks(place, UserPromptSubmit=[entry(noting(place))], SessionEnd=[entry(noting(place))])
    with fake_model(place, [hang(LATE)]) as model, acp(place) as client:
        session = client.open(place)
        prompts = [client.begin_prompt(session, text) for text in ("one", "two", "three")]
        model.wait_for(1)
        client.close()
        assert stops(client, prompts) == ["cancelled"] * 3

    assert [one["hook_event_name"] for one in hook_inputs(place)] == ["UserPromptSubmit", "SessionEnd"]


def test_a_cancel_counts_for_a_prompt_that_waits_for_its_session(place: Place) -> None:
    with fake_model(place, [say("one")]), acp(place) as client:
        session = client.open(place)
        client.prompt(session, "first")
        client.ask("session/close", sessionId=session)
        # At once, so that the cancel is there before the session is.
        with client.in_one_write():
            client.begin("session/load", **stored(place, session))
            prompt = client.begin_prompt(session, "second")
            client.tell("session/cancel", sessionId=session)
        assert stops(client, [prompt]) == ["cancelled"]
        client.close()


def test_a_command_that_a_failed_turn_leaves_running_is_reported(place: Place) -> None:
    runs = call("c1", "exec_command", {"cmd": "sleep 1000", "login": False, "yield_time_ms": 250})
    with (
        fake_model(place, [runs], api_error(400, "out"), top='sandbox_mode = "danger-full-access"'),
        acp(place) as client,
    ):
        assert ending(client, client.begin_prompt(client.open(place), "go")).endswith("out")
        client.close()

    [left] = client.calls()
    assert (left["status"], texts(left)[-1]) == ("completed", "It is still running.")


def test_prompts_without_number_keep_nobody_from_an_answer(place: Place) -> None:
    with fake_model(place, [call("c1", "exec_command", OUTSIDE)], repeat([say("done")])), acp(place) as client:
        session = client.open(place)
        first = client.begin_prompt(session, "go")
        client.wait(lambda: bool(client.requests))
        numbers = [client.begin_prompt(session, "go") for _ in range(PROMPTS)]
        client.reply(client.requests[0], {"outcome": {"outcome": "selected", "optionId": "no"}})
        assert stops(client, [first]) == ["end_turn"]
        client.tell("session/cancel", sessionId=session)
        ended = [ending(client, number) for number in numbers]
        client.close()

    assert {"cancelled", "too many prompts wait already"} <= set(ended)


def test_a_server_that_does_not_start_holds_up_no_end(place: Place) -> None:
    slow = '[mcp_servers.slow]\ncommand = "sleep"\nargs = ["1000"]\nrequired = true\nstartup_timeout_sec = 1000\n'
    place.use_model("http://127.0.0.1:9/v1", slow)
    with acp(place) as client:
        client.begin("session/new", cwd=str(place.repo), mcpServers=[])
        client.ask("session/list")
        assert client.close().status == 0


def test_a_form_with_a_number_that_is_none_is_declined(place: Place) -> None:
    calls = call("c", "mcp__everything__trigger-elicitation-request", {})
    with FakeResponses([calls], [say("done")]) as model:
        place.use_model(model.base_url, everything(required=True, default_tools_approval_mode="approve"))
        with acp(place, elicitation={"form": {}}) as client:
            prompt = client.begin_prompt(client.open(place), "go")
            client.wait(lambda: bool(client.requests))
            answer = {
                "jsonrpc": "2.0",
                "id": client.requests[0]["id"],
                "result": {"action": "accept", "content": {"n": 0}},
            }
            client.write(json.dumps(answer).replace('"n": 0', '"n": 1e999').encode() + b"\n")
            assert stops(client, [prompt]) == ["end_turn"]
            finished = client.close()

    assert "decline" in model.requests[1].output_of("c")
    assert finished.err == ""

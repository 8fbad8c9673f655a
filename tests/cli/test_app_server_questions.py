"""What `codex-py app-server` asks its client: approvals, questions of the model, what skills lack."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.agents import cast, spawn, wait
from tests.support.app_client import AppClient, Json, app_server, deciding
from tests.support.fake_responses import FakeResponses, call, custom_call, fake_model, say
from tests.support.home import Place, toml_value
from tests.support.mcp_servers import everything, odd

ASKING: Json = {"sandbox": "read-only", "approvalPolicy": "on-request"}
APPROVAL = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
# The justification of `outside`, as it is passed on.
REASON = "it asks to run outside the sandbox; model: it must"
INPUT = "item/tool/requestUserInput"
PATCH = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Demo\n+# Other\n*** End Patch\n"


def outside(call_id: str, cmd: str) -> Json:
    arguments = {"cmd": cmd, "login": False, "sandbox_permissions": "require_escalated", "justification": "it must"}
    return call(call_id, "exec_command", arguments)


def asked(client: AppClient, question: Json) -> Json:
    """What one question of a request for input says."""
    [only] = question["params"]["questions"]
    return only


@pytest.mark.parametrize(
    ("decision", "status", "times"),
    [
        ("accept", "completed", 2),
        ("acceptForSession", "completed", 1),
        ({"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch"]}}, "completed", 1),
        ("decline", "declined", 2),
        ("nonsense", "declined", 2),
        (None, "declined", 2),
    ],
)
def test_a_command_waits_for_the_clients_decision(place: Place, decision: Any, status: str, times: int) -> None:
    mark = place.home / "mark"
    twice = [outside("c1", f"touch {mark}")], [outside("c2", f"touch {mark}")], [say("done")]
    with (
        fake_model(place, *twice),
        app_server(place, decide=deciding(requestApproval={"decision": decision})) as client,
    ):
        client.turn(client.open(place, **ASKING), "go")
        client.close()

    requests = [one["params"] for one in client.requests]
    started = [one["item"] for one in client.notified("item/started") if one["item"]["type"] == "commandExecution"]
    assert [one["itemId"] for one in requests] == ["c1", "c2"][:times]
    assert (requests[0]["reason"], requests[0]["cwd"]) == (REASON, str(place.repo))
    assert requests[0]["availableDecisions"] == [
        "accept",
        "acceptForSession",
        {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["touch", str(mark)]}},
        "decline",
        "cancel",
    ]
    assert [one["id"] for one in started] == ["c1", "c2"]
    assert [item["status"] for item in client.items("commandExecution")] == [status, status]
    assert mark.exists() == (status == "completed")
    assert len(client.notified("serverRequest/resolved")) == times
    flags = [one["status"].get("activeFlags") for one in client.notified("thread/status/changed")]
    assert ["waitingOnApproval"] in flags


def test_a_cancelled_approval_ends_the_turn(place: Place) -> None:
    with (
        fake_model(place, [outside("c1", "touch mark")]),
        app_server(place, decide=deciding(requestApproval={"decision": "cancel"})) as client,
    ):
        turn = client.turn(client.open(place, **ASKING), "go")
        client.close()

    assert turn["status"] == "interrupted"


@pytest.mark.parametrize(("decision", "status"), [("accept", "completed"), ("decline", "declined")])
def test_a_patch_is_shown_before_it_is_asked_about(place: Place, decision: str, status: str) -> None:
    with (
        fake_model(place, [custom_call("p1", "apply_patch", PATCH)], [say("done")]),
        app_server(place, decide=deciding(requestApproval={"decision": decision})) as client,
    ):
        client.turn(client.open(place, **ASKING), "go")
        client.close()

    [request] = client.requests
    [started] = [one["item"] for one in client.notified("item/started") if one["item"]["type"] == "fileChange"]
    [ended] = client.items("fileChange")
    assert (request["method"], request["params"]["itemId"]) == (CHANGE, "p1")
    assert (started["status"], ended["status"]) == ("inProgress", status)
    assert [one["path"] for one in started["changes"]] == [str(place.repo / "README.md")]
    assert "+# Other" in started["changes"][0]["diff"]
    assert (place.repo / "README.md").read_text().startswith("# Other") == (status == "completed")


def test_an_interrupt_takes_a_question_back_and_a_late_answer_is_dropped(place: Place) -> None:
    with fake_model(place, [outside("c1", "touch mark")], [say("fine")]), app_server(place) as client:
        thread = client.open(place, **ASKING)
        turn = client.begin_turn(thread, "go")
        request = client.next_request(APPROVAL)
        client.ask("turn/interrupt", threadId=thread, turnId=turn)
        client.ended(turn)
        for _ in range(2):
            client.reply(request, {"decision": "accept"})
        assert client.turn(thread, "and now?")["status"] == "completed"
        client.close()

    assert client.notified("serverRequest/resolved") == [{"threadId": thread, "requestId": request["id"]}]
    assert not (place.repo / "mark").exists()


def questions(*ids: str) -> list[Json]:
    options = [{"label": "A", "description": "the first"}, {"label": "B", "description": "the second"}]
    return [{"id": one, "header": f"Which {one}", "question": "A or B?", "options": options} for one in ids]


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        (
            {"result": {"answers": {"last": {"answers": ["mine"]}, "first": {"answers": ["B", "user_note: yes"]}}}},
            {"first": ["B", "user_note: yes"], "second": [], "last": ["mine"]},
        ),
        ({"result": {"answers": {"first": "B", "second": {"answers": [7, "x"]}, "other": {"answers": ["A"]}}}}, {}),
        ({"result": {"answers": [1, None]}}, {}),
        ({"error": {"code": -32601, "message": "no such method"}}, {}),
    ],
)
def test_the_model_asks_all_its_questions_at_once(place: Place, reply: Json, output: Json) -> None:
    script = (
        [call("u1", "request_user_input", {"questions": questions("first", "second", "last")})],
        [say("so be it")],
    )
    with fake_model(place, *script) as model, app_server(place) as client:
        turn = client.begin_turn(client.open(place), "ask me")
        client.send({"id": client.next_request(INPUT)["id"], **reply})
        client.ended(turn)
        client.close()

    [request] = client.requests
    assert (request["method"], request["params"]["itemId"]) == (INPUT, "u1")
    result = [{**one, "isOther": True, "isSecret": False} for one in questions("first", "second", "last")]
    assert request["params"]["questions"] == result
    answers = {one: {"answers": output.get(one, [])} for one in ("first", "second", "last")}
    assert json.loads(model.requests[1].output_of("u1")) == {"answers": answers}


@pytest.mark.parametrize(("granted", "said"), [({"network": {"enabled": True}}, True), ({}, False)])
def test_commands_may_do_more_when_the_client_grants_all_of_it(place: Place, granted: Json, said: bool) -> None:
    wanted = {"permissions": {"network": {"enabled": True}}, "reason": "to fetch"}
    flags = dict.fromkeys(("sandbox_approval", "rules", "mcp_elicitations", "request_permissions"), True)
    with (
        fake_model(place, [call("r1", "request_permissions", wanted)], [say("done")]) as model,
        app_server(place, decide=deciding(requestApproval={"permissions": granted, "scope": "turn"})) as client,
    ):
        client.turn(client.open(place, sandbox="workspace-write", approvalPolicy={"granular": flags}), "go")
        client.close()

    [request] = client.requests
    assert request["method"] == "item/permissions/requestApproval"
    assert request["params"]["permissions"] == {"network": {"enabled": True}, "fileSystem": None}
    assert request["params"]["reason"] == "to fetch"
    assert ("enabled" in model.requests[1].output_of("r1")) == said


def test_an_agents_question_says_which_agent_asks(place: Place) -> None:
    parts = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1")], [say("done")]],
        "look at a": [[outside("c1", "touch mark")], [say("a is fine")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url)
        with app_server(place, decide=deciding(requestApproval={"decision": "decline"})) as client:
            client.turn(client.open(place, **ASKING), "go")
            client.close()

    [request] = client.requests
    assert (request["params"]["agent"], request["params"]["reason"]) == ("agent-1", f"[agent agent-1] {REASON}")
    assert [item["tool"] for item in client.items("collabAgentToolCall")] == ["spawnAgent", "wait"]


def needy_skill(place: Place) -> None:
    place.write(".agents/skills/needy/SKILL.md", "---\nname: needy\ndescription: needs things\n---\nBODY\n")
    place.write(
        ".agents/skills/needy/agents/openai.yaml",
        "dependencies:\n  tools:\n    - type: env_var\n      value: NEEDED_TOKEN\n      description: for the thing\n"
        "    - type: mcp\n      value: thing\n      transport: stdio\n      command: no-such-server\n",
    )


@pytest.mark.parametrize(("name", "kinds"), [("codex_vscode", ["secret", "install"]), ("some_tool", ["secret"])])
def test_what_a_skill_lacks_is_asked_for(place: Place, name: str, kinds: list[str]) -> None:
    """Only programs of the same maker offer to install servers."""
    needy_skill(place)
    seen: list[str] = []

    def decide(request: Json) -> Json:
        question = request["params"]["questions"][0]
        seen.append("secret" if question["isSecret"] else "install")
        assert ("kept in memory for this session only" in question["question"]) == question["isSecret"]
        answer = "the-secret-value" if question["isSecret"] else "Continue anyway"
        return {"answers": {question["id"]: {"answers": [answer]}}}

    with (
        fake_model(place, [call("c1", "exec_command", {"cmd": "echo $NEEDED_TOKEN", "login": False})], [say("ok")]),
        app_server(place, decide=decide, name=name) as client,
    ):
        client.turn(client.open(place), "use $needy")
        finished = client.close()

    assert seen == kinds
    assert [item["aggregatedOutput"] for item in client.items("commandExecution")] != ["\n"]
    assert "the-secret-value" not in finished.out
    assert any("thing" in message for message in client.warnings())


def test_a_servers_form_is_answered_as_a_whole(place: Place) -> None:
    forms: list[Json] = []

    def decide(request: Json) -> Json:
        forms.append(request)
        return {"action": "accept", "content": {"name": "Ada Lovelace", "check": True}, "_meta": None}

    with FakeResponses([call("c", "mcp__everything__trigger-elicitation-request", {})], [say("done")]) as model:
        place.use_model(model.base_url, everything(required=True, default_tools_approval_mode="approve"))
        with app_server(place, decide=decide) as client:
            client.turn(client.open(place, approvalPolicy="on-request"), "go")
            client.close()

    [form] = forms
    [item] = client.items("mcpToolCall")
    assert (form["method"], form["params"]["serverName"]) == ("mcpServer/elicitation/request", "everything")
    assert (form["params"]["mode"], form["params"]["requestedSchema"]["required"]) == ("form", ["name"])
    assert (item["server"], item["tool"], item["status"]) == ("everything", "trigger-elicitation-request", "completed")
    assert "Ada Lovelace" in str(item["result"]["content"])


def test_a_server_that_asks_while_the_thread_opens_is_refused_at_once(place: Place) -> None:
    """Nobody hears it yet: the server goes on, and so does the thread. Its tool is called what it was answered."""
    with (
        fake_model(
            place,
            [call("c", "mcp__early__decline", {"text": "x"})],
            [say("done")],
            top=odd("early", "asks_early", required=True, default_tools_approval_mode="approve"),
        ),
        app_server(place) as client,
    ):
        client.turn(client.open(place, approvalPolicy="on-request"), "go")
        client.close()

    assert client.requests == []
    assert [(item["tool"], item["status"]) for item in client.items("mcpToolCall")] == [("decline", "completed")]


def test_a_projects_server_says_all_that_a_yes_allows(place: Place) -> None:
    place.write(".codex/config.toml", odd("theirs", "good", cwd=str(place.repo), env={"LEVEL": "1"}))
    trusted = f'[projects.{toml_value(str(place.repo))}]\ntrust_level = "trusted"\n'
    with (
        fake_model(place, [say("done")], top=trusted),
        app_server(place, decide=lambda _: {"answers": {}}) as client,
    ):
        client.turn(client.open(place), "go")
        client.close()

    [request] = client.requests
    question = asked(client, request)
    facts = question["question"].split("; ")
    assert question["header"] == "Start the project's MCP server theirs?"
    assert {"theirs runs on your machine", f"in {place.repo}", "with LEVEL=1"} <= set(facts)


@pytest.mark.parametrize(("answer", "status"), [("Allow once", "completed"), ("Decline", "failed"), (None, "failed")])
def test_a_call_of_a_server_waits_for_a_yes(place: Place, answer: str | None, status: str) -> None:
    def decide(request: Json) -> Json:
        said = [] if answer is None else [answer]
        return {"answers": {request["params"]["questions"][0]["id"]: {"answers": said}}}

    with FakeResponses([call("c", "mcp__everything__echo", {"message": "hi"})], [say("done")]) as model:
        place.use_model(model.base_url, everything(required=True, default_tools_approval_mode="prompt"))
        with app_server(place, decide=decide) as client:
            client.turn(client.open(place, sandbox="workspace-write", approvalPolicy="on-request"), "go")
            client.close()

    [request] = client.requests
    assert (request["method"], request["params"]["itemId"]) == (INPUT, "c")
    assert 'everything.echo {"message":"hi"}' in asked(client, request)["question"]
    assert [item["status"] for item in client.items("mcpToolCall")] == [status]

"""`codex-py acp` as an editor meets it: what it is told of a turn, what it is asked, and how it stops one."""

from __future__ import annotations

import threading

import pytest

from tests.support.acp import Json, Refused, acp, choose, texts
from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    call,
    completed,
    custom_call,
    delta,
    fake_model,
    hang,
    incomplete,
    reasoning,
    repeat,
    say,
    tokens,
    web_search,
)
from tests.support.home import Place
from tests.support.process import run
from tests.support.skills import add_skill, skill_text

PATCH = (
    "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n"
    "*** Update File: README.md\n@@\n-A small demo.\n+A demo.\n*** End Patch\n"
)
OUTSIDE = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "to make it"}
WHICH = {
    "questions": [
        {
            "id": "q",
            "header": "Colour",
            "question": "Which one?",
            "options": [
                {"label": "red", "description": "like a rose"},
                {"label": "blue", "description": "like the sky"},
            ],
        }
    ]
}
NEEDS_KEY = """\
dependencies:
  tools:
    - type: env_var
      value: DEPLOY_KEY
"""
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def shown(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": text}}


def use(place: Place, model: FakeResponses, top: str = "") -> Place:
    place.use_model(model.base_url, top)
    return place


def test_a_turn_is_reported_as_it_goes(place: Place) -> None:
    script = (
        [reasoning("blob", "Thinking"), call("c1", "exec_command", {"cmd": "echo hi"})],
        [say("done"), completed(tokens(100, 10))],
    )
    with fake_model(place, *script), acp(place) as client:
        ended = client.prompt(client.open(place), "go")
        finished = client.close()

    [ran] = client.calls()
    assert (ended["stopReason"], ended["usage"]["totalTokens"]) == ("end_turn", 110)
    assert (client.said(), client.said("agent_thought_chunk")) == ("done", "Thinking")
    assert (ran["title"], ran["kind"], ran["status"]) == ("`echo hi`", "execute", "completed")
    assert ran["rawInput"] == {"command": "echo hi", "cwd": str(place.repo)}
    assert texts(ran) == ["```\nhi\n```"]
    assert client.updates("usage_update")[-1] == {"sessionUpdate": "usage_update", "used": 110, "size": 272_000}
    assert client.updates("session_info_update") == [{"sessionUpdate": "session_info_update", "title": "go"}]
    assert (finished.status, finished.err) == (0, "")


def test_words_come_as_they_are_said_and_messages_stay_apart(place: Place) -> None:
    first = [delta("Let me "), delta("look."), say("Let me look."), say("And again."), call("c1", "nothing", {})]
    with fake_model(place, first, [say("Found.")]), acp(place) as client:
        client.prompt(client.open(place), "go")

    chunks = [one["content"]["text"] for one in client.updates("agent_message_chunk")]
    ids = [one["messageId"] for one in client.updates("agent_message_chunk")]
    assert chunks == ["Let me ", "look.", "\n\nAnd again.", "Found."]
    assert len(set(ids)) == 3


def test_a_patch_is_asked_about_and_shown_as_a_diff(place: Place) -> None:
    script = ([custom_call("p1", "apply_patch", PATCH)], [say("done")])
    with fake_model(place, *script), acp(place, decide=choose("once")) as client:
        client.prompt(client.open(place), "go")

    [question], [edited] = client.questions, client.calls()
    new, readme = str(place.repo / "new.txt"), str(place.repo / "README.md")
    added = {"type": "diff", "path": new, "oldText": None, "newText": "one\ntwo\n"}
    assert [(one["kind"], one["optionId"]) for one in question["options"]] == [
        ("allow_once", "once"),
        ("allow_always", "session"),
        ("reject_once", "no"),
    ]
    assert question["toolCall"]["toolCallId"] == edited["toolCallId"]
    assert question["toolCall"]["content"][:2] == [
        added,
        {"type": "diff", "path": readme, "oldText": "A small demo.\n", "newText": "A demo.\n"},
    ]
    assert (edited["title"], edited["kind"], edited["status"]) == ("Edit new.txt, README.md", "edit", "completed")
    assert edited["locations"] == [{"path": new, "line": 1}, {"path": readme, "line": 1}]
    assert edited["content"] == [
        added,
        {"type": "diff", "path": readme, "oldText": "# Demo\n\nA small demo.\n", "newText": "# Demo\n\nA demo.\n"},
    ]
    assert (place.repo / "new.txt").read_text() == "one\ntwo\n"


def test_a_command_that_is_refused_is_reported_as_failed_and_the_model_hears_why(place: Place) -> None:
    script = ([call("c1", "exec_command", OUTSIDE)], [say("pity")])
    with fake_model(place, *script) as model, acp(place, decide=choose("no")) as client:
        ended = client.prompt(client.open(place), "go")

    [question], [ran] = client.questions, client.calls()
    assert question["toolCall"]["title"] == "`touch made`"
    assert question["toolCall"]["rawInput"]["command"] == "touch made"
    assert "Model: to make it" in texts(question["toolCall"])[-1]
    assert (ran["toolCallId"], ran["status"]) == (question["toolCall"]["toolCallId"], "failed")
    assert "declined by the user" in model.requests[1].output_of("c1")
    assert ended["stopReason"] == "end_turn"
    assert not (place.repo / "made").exists()


@pytest.mark.parametrize(
    "said",
    [
        {"outcome": {"outcome": "cancelled"}},
        {"outcome": {"outcome": "selected", "optionId": "made-up"}},
        {"outcome": "once"},
        {},
    ],
)
def test_whatever_is_no_choice_is_a_no(place: Place, said: Json) -> None:
    script = ([call("c1", "exec_command", OUTSIDE)], [say("pity")])
    with fake_model(place, *script) as model, acp(place, decide=lambda _: said) as client:
        client.prompt(client.open(place), "go")

    assert "declined by the user" in model.requests[1].output_of("c1")


def test_a_yes_for_the_session_is_asked_for_once(place: Place) -> None:
    again = [call("c2", "exec_command", OUTSIDE)]
    script = (
        [call("c1", "exec_command", OUTSIDE)],
        again,
        [say("done")],
    )
    with fake_model(place, *script), acp(place, decide=choose("session")) as client:
        client.prompt(client.open(place), "go")

    assert len(client.requests) == 1
    assert [one["status"] for one in client.calls()] == ["completed", "completed"]
    assert (place.repo / "made").exists()


def test_a_cancelled_turn_takes_its_question_back(place: Place) -> None:
    script = (
        [call("c1", "exec_command", OUTSIDE)],
        [say("later")],
    )
    with fake_model(place, *script) as model, acp(place) as client:
        session = client.open(place)
        prompt = client.begin_prompt(session, "go")
        client.wait(lambda: bool(client.requests))
        client.tell("session/cancel", sessionId=session)
        ended = client.answer(prompt)
        # What the client says now, nobody waits for.
        client.reply(client.requests[0], {"outcome": {"outcome": "selected", "optionId": "once"}})
        client.reply(client.requests[0], {"outcome": {"outcome": "cancelled"}})
        again = client.prompt(session, "and now?")

    assert (ended["stopReason"], again["stopReason"]) == ("cancelled", "end_turn")
    assert client.taken_back == []
    assert [one["status"] for one in client.calls()] == ["failed"]
    assert not (place.repo / "made").exists()
    assert "aborted" in model.requests[1].output_of("c1")


def test_a_request_that_is_cancelled_is_a_turn_that_is_cancelled(place: Place) -> None:
    with fake_model(place, [call("c1", "exec_command", OUTSIDE)]), acp(place) as client:
        prompt = client.begin_prompt(client.open(place), "go")
        client.wait(lambda: bool(client.requests))
        client.tell("$/cancel_request", requestId="nosuch")
        client.tell("$/cancel_request", requestId=prompt)
        assert client.answer(prompt)["stopReason"] == "cancelled"


def test_a_cancel_right_behind_its_prompt_counts(place: Place) -> None:
    never = repeat([hang(threading.Event())])
    with fake_model(place, never, excuse={"unplayed"}), acp(place) as client:
        session = client.open(place)
        prompt = client.begin_prompt(session, "go")
        client.tell("session/cancel", sessionId=session)
        assert client.answer(prompt)["stopReason"] == "cancelled"


def test_prompts_wait_for_each_other_and_a_cancel_drops_all(place: Place) -> None:
    script = ([say("one"), hang(threading.Event())], [say("four")])
    with fake_model(place, *script) as model, acp(place) as client:
        session = client.open(place)
        waiting = [client.begin_prompt(session, text) for text in ("first", "second", "third")]
        client.wait(lambda: client.said() == "one")
        client.tell("session/cancel", sessionId=session)
        assert [client.answer(number)["stopReason"] for number in waiting] == ["cancelled"] * 3
        assert client.prompt(session, "fourth")["stopReason"] == "end_turn"

    assert model.requests[1].texts("user")[-1] == "fourth"


def test_a_question_of_the_model_is_a_choice(place: Place) -> None:
    script = ([call("c1", "request_user_input", WHICH)], [say("blue it is")])
    with fake_model(place, *script) as model, acp(place, decide=choose("option_1")) as client:
        client.prompt(client.open(place), "go")

    [question], [result] = client.questions, client.calls()
    assert [one["name"] for one in question["options"]] == ["red", "blue", "No answer"]
    assert question["toolCall"]["title"] == "Colour"
    assert texts(question["toolCall"]) == ["Which one?\n\n- red: like a rose\n- blue: like the sky"]
    assert (result["status"], texts(result)[-1]) == ("completed", "Answer: blue")
    assert model.requests[1].output_of("c1") == '{"answers":{"q":{"answers":["blue"]}}}'


def test_a_client_with_forms_lets_the_user_write_the_answer(place: Place) -> None:
    def decide(question: Json) -> Json:
        if question["method"] == "elicitation/create":
            assert list(question["params"]["requestedSchema"]["properties"]) == ["answer"]
            return {"action": "accept", "content": {"answer": " green "}}
        return {"outcome": {"outcome": "selected", "optionId": "write"}}

    script = (
        [call("c1", "request_user_input", WHICH)],
        [say("green")],
    )
    with fake_model(place, *script) as model, acp(place, decide=decide, elicitation={"form": {}}) as client:
        client.prompt(client.open(place), "go")

    assert model.requests[1].output_of("c1") == '{"answers":{"q":{"answers":["green"]}}}'


def test_a_secret_is_not_asked_for_but_reported(place: Place) -> None:
    skill = add_skill(place.codex_home / "skills", "deploy")
    (skill.parent / "agents").mkdir()
    (skill.parent / "agents/openai.yaml").write_text(NEEDS_KEY)
    with fake_model(place, [say("done")]), acp(place) as client:
        ended = client.prompt(client.open(place), "use $deploy")

    assert ended["stopReason"] == "end_turn"
    assert client.requests == []
    assert "`DEPLOY_KEY`" in client.said("agent_thought_chunk")


def test_a_message_brings_suggestions_and_names_skills_here_too(place: Place) -> None:
    for number in range(60):
        name = f"museum-{number:02}"
        add_skill(place.codex_home / "skills", name, skill_text(name, f"Guard museum {number}."))
    add_skill(place.codex_home / "skills", "zz-bill", skill_text("zz-bill", "Make a bill for a customer."))
    few = "[skills]\nmax_context_tokens = 300\n"
    with fake_model(place, [say("one")], [say("two")], top=few) as model, acp(place) as client:
        session = client.open(place)
        client.prompt(session, "make a bill for the customer")
        client.prompt(session, "use the zz bill skill")
    first, second = model.requests
    items = [text for text in second.texts("developer") if text.startswith("<skill_suggestions>")]
    assert "- zz-bill: Make a bill" in items[0] and "- zz-bill [named by the user]: " in items[1]
    assert second.input_bytes.startswith(first.input_bytes[:-1])


def test_a_plan_is_carried_out_when_it_is_accepted(place: Place) -> None:
    plan = "<proposed_plan>\nWrite it.\n</proposed_plan>"
    script = ([say(plan)], [custom_call("p1", "apply_patch", PATCH)], [say("done")])
    with fake_model(place, *script, top='sandbox_mode = "workspace-write"'), acp(place) as client:
        session = client.open(place)
        client.decide = choose("yes")
        client.ask("session/set_mode", sessionId=session, modeId="plan")
        ended = client.prompt(session, "go")

    [question] = client.questions
    assert ended["stopReason"] == "end_turn"
    assert (question["toolCall"]["kind"], texts(question["toolCall"])) == ("switch_mode", ["Write it."])
    assert client.updates("current_mode_update") == [{"sessionUpdate": "current_mode_update", "currentModeId": "auto"}]
    assert (place.repo / "new.txt").exists()


def test_a_plan_that_is_not_accepted_is_not_carried_out(place: Place) -> None:
    script = ([say("<proposed_plan>\nWrite it.\n</proposed_plan>")], [say("Another one.")])
    with fake_model(place, *script), acp(place, decide=choose("no")) as client:
        session = client.open(place)
        client.prompt(session, "/plan go")
        ended = client.prompt(session, "think again")
        assert ended["stopReason"] == "end_turn"
        assert client.updates("current_mode_update") == [
            {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}
        ]
        client.ask("session/load", sessionId=session, cwd=str(place.repo), mcpServers=[])

    # What was said is told again without its tags, as it was the first time.
    assert (client.said().count("Write it."), "proposed_plan" in client.said()) == (2, False)


def test_a_list_of_steps_is_the_clients_plan(place: Place) -> None:
    steps = {"plan": [{"step": "look", "status": "completed"}, {"step": "write", "status": "in_progress"}]}
    with fake_model(place, [call("c1", "update_plan", steps)], [say("done")]), acp(place) as client:
        client.prompt(client.open(place), "go")

    assert client.updates("plan") == [
        {
            "sessionUpdate": "plan",
            "entries": [
                {"content": "look", "priority": "medium", "status": "completed"},
                {"content": "write", "priority": "medium", "status": "in_progress"},
            ],
        }
    ]
    assert client.calls() == []


def test_modes_change_what_may_be_done(place: Place) -> None:
    script = (
        [custom_call("p1", "apply_patch", PATCH)],
        [say("no")],
        [custom_call("p2", "apply_patch", PATCH)],
        [say("yes")],
    )
    with fake_model(place, *script), acp(place) as client:
        session = client.open(place)
        client.ask("session/set_mode", sessionId=session, modeId="read-only")
        client.prompt(session, "write")
        client.ask("session/set_mode", sessionId=session, modeId="auto")
        client.prompt(session, "write now")
        with pytest.raises(Refused, match="there is no mode `nosuch`"):
            client.ask("session/set_mode", sessionId=session, modeId="nosuch")

    assert client.requests == []
    assert [one["status"] for one in client.calls()] == ["failed", "completed"]


@pytest.mark.parametrize(
    ("top", "mode", "first"),
    [
        ("", "ask", "read-only"),
        ('sandbox_mode = "workspace-write"', "auto", "read-only"),
        ('approval_policy = "untrusted"', "configured", "configured"),
    ],
)
def test_a_session_begins_in_the_mode_of_its_configuration(place: Place, top: str, mode: str, first: str) -> None:
    with fake_model(place, top=top), acp(place) as client:
        opened = client.ask("session/new", cwd=str(place.repo), mcpServers=[])

    assert opened["modes"]["currentModeId"] == mode
    assert opened["modes"]["availableModes"][0]["id"] == first
    assert opened["modes"]["availableModes"][-1]["id"] == "plan"


def test_options_choose_the_model_and_its_effort(place: Place) -> None:
    known = "[models.other]\ncontext_window = 1000\n[models.third]\ncontext_window = 1000\n"
    with fake_model(place, [say("done")], top=known) as model, acp(place) as client:
        opened = client.ask("session/new", cwd=str(place.repo), mcpServers=[])
        session = opened["sessionId"]
        client.ask("session/set_config_option", sessionId=session, configId="model", value="other")
        chosen = client.ask("session/set_config_option", sessionId=session, configId="thought_level", value="high")
        for option, value in (("model", "nosuch"), ("nosuch", "x"), ("mode", True)):
            with pytest.raises(Refused):
                client.ask("session/set_config_option", sessionId=session, configId=option, value=value)
        client.prompt(session, "go")

    offered = {one["id"]: [option["value"] for option in one["options"]] for one in opened["configOptions"]}
    assert [one["category"] for one in opened["configOptions"]] == ["mode", "model", "thought_level"]
    assert offered["model"] == ["gpt-5.1-codex", "other", "third"]
    assert [one["currentValue"] for one in chosen["configOptions"]] == ["ask", "other", "high"]
    assert (model.requests[0].body["model"], model.requests[0].body["reasoning"]["effort"]) == ("other", "high")


def test_a_prompt_brings_files_links_and_pictures(place: Place) -> None:
    blocks = [
        {"type": "text", "text": "Compare "},
        {"type": "resource_link", "uri": f"file://{place.repo}/a%20b.py", "name": "a b.py"},
        {"type": "text", "text": " with "},
        {"type": "resource", "resource": {"uri": "file:///x/notes.md", "mimeType": "text/markdown", "text": "# Notes"}},
        {"type": "image", "data": PIXEL, "mimeType": "image/gif"},
    ]
    with fake_model(place, [say("done")]) as model, acp(place) as client:
        client.ask("session/prompt", sessionId=client.open(place), prompt=blocks)

    sent = model.requests[0].input[-1]["content"]
    assert sent[-1]["text"] == (
        f"Compare [@a b.py]({place.repo}/a b.py) with [@notes.md](/x/notes.md)\n\n"
        '<context ref="file:///x/notes.md">\n# Notes\n</context>'
    )
    assert [part["type"] for part in sent] == ["input_text", "input_image", "input_text", "input_text"]
    assert sent[1]["image_url"] == f"data:image/gif;base64,{PIXEL}"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "image", "data": PIXEL, "mimeType": "image/svg+xml"},
        {"type": "image", "data": "%%%", "mimeType": "image/png"},
        {"type": "image", "uri": "file:///etc/hostname"},
        {"type": "text"},
        {"type": "nosuch"},
        {"type": "text", "text": " \n"},
        "text",
    ],
)
def test_a_block_that_cannot_be_taken_is_an_error_and_no_turn(place: Place, block: object) -> None:
    with fake_model(place, [say("done")]), acp(place) as client:
        session = client.open(place)
        with pytest.raises(Refused) as refused:
            client.ask("session/prompt", sessionId=session, prompt=[block])
        assert client.prompt(session, "go")["stopReason"] == "end_turn"

    assert refused.value.code == -32602


def test_skills_are_commands_and_mentions(place: Place) -> None:
    add_skill(place.codex_home / "skills", "lint", skill_text("lint"))
    with fake_model(place, [say("one")], [say("two")]) as model, acp(place) as client:
        session = client.open(place)
        client.prompt(session, "/lint app.py")
        client.prompt(session, "again with $lint")

    [result] = client.updates("available_commands_update")
    names = [one["name"] for one in result["availableCommands"]]
    used = [one["title"] for one in client.calls()]
    assert "lint" in names
    assert {"compact", "init", "review", "status"} <= set(names)
    assert used == ["Use the skill lint", "Use the skill lint"]
    assert model.requests[0].texts("user")[-1] == "$lint app.py"


def test_commands_answer_without_the_model(place: Place) -> None:
    with fake_model(place), acp(place) as client:
        session = client.open(place)
        for command in ("/status", "/context", "/skills", "/mcp", "/ps", "/model", "/plan", "/stop", "/compact"):
            assert client.prompt(session, command)["stopReason"] == "end_turn"
        with pytest.raises(Refused, match="no command with the number `7` is running"):
            client.prompt(session, "/stop 7")

    said = client.said()
    assert f"session: {session}" in said
    assert "**Context: " in said
    assert "Model: gpt-5.1-codex" in said
    assert "there is nothing to compact yet" in client.said("agent_thought_chunk")


def test_commands_that_are_prompts_reach_the_model(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")], [say("three")]) as model, acp(place) as client:
        session = client.open(place)
        client.prompt(session, "/init mind the tests")
        client.prompt(session, "/review what is slow?")
        client.prompt(session, "/etc/hosts looks odd")

    question = [request.texts("user")[-1] for request in model.requests]
    assert question[0].endswith("\n\nmind the tests")
    assert "Look at this above all: what is slow?" in question[1]
    assert question[2] == "/etc/hosts looks odd"


def test_compacting_is_a_call_of_its_own(place: Place) -> None:
    script = ([say("one")], [say("A summary.")])
    with fake_model(place, *script), acp(place) as client:
        session = client.open(place)
        client.prompt(session, "go")
        ended = client.prompt(session, "/compact the names")

    [summed] = client.calls()
    assert ended["stopReason"] == "end_turn"
    assert (summed["kind"], summed["status"]) == ("think", "completed")
    assert "A summary." in texts(summed)[0]


def test_a_search_of_the_provider_is_reported(place: Place) -> None:
    with fake_model(place, [web_search("cats"), say("done")]), acp(place) as client:
        client.prompt(client.open(place), "go")

    [searched] = client.calls()
    assert (searched["title"], searched["kind"], searched["status"]) == ("Search the web: cats", "fetch", "completed")


def test_a_failed_turn_is_an_error_with_its_reason(place: Place) -> None:
    with fake_model(place, api_error(400, "the model is out"), [say("back")]), acp(place) as client:
        session = client.open(place)
        with pytest.raises(Refused, match="the model is out") as refused:
            client.prompt(session, "go")
        assert client.prompt(session, "again")["stopReason"] == "end_turn"

    assert refused.value.code == -32603


def test_an_answer_that_is_too_long_stops_with_that_reason(place: Place) -> None:
    with fake_model(place, [say("half"), incomplete("max_output_tokens")]), acp(place) as client:
        assert client.prompt(client.open(place), "go")["stopReason"] == "max_tokens"

    assert "`max_output_tokens`" in client.said()


def test_thoughts_are_not_reported_to_who_hides_them(place: Place) -> None:
    script = [reasoning("blob", "Thinking"), say("done")]
    with fake_model(place, script, top="hide_agent_reasoning = true"), acp(place) as client:
        client.prompt(client.open(place), "go")

    assert client.said("agent_thought_chunk") == ""


def test_a_command_left_running_is_reported_when_the_turn_ends(place: Place) -> None:
    left = call("c1", "exec_command", {"cmd": "echo up; sleep 1000", "yield_time_ms": 250})
    with fake_model(place, [left], [say("it runs")]), acp(place) as client:
        session = client.open(place)
        client.prompt(session, "serve")
        result = client.updates("tool_call_update")
        client.prompt(session, "/ps")
        client.prompt(session, "/stop")
        finished = client.close()

    [ran] = client.calls()
    assert {"status": "completed", "content": [shown("```\nup\n```"), shown("It is still running.")]}.items() <= result[
        -1
    ].items()
    assert (ran["status"], texts(ran)) == ("failed", ["```\nup\n```"])
    assert "sleep 1000" in client.said()
    assert "Stopped 1 command." in client.said()
    assert finished.status == 0


def test_permissions_for_the_turn_are_a_question(place: Place) -> None:
    wanted = {"permissions": {"network": {"enabled": True}}, "reason": "to fetch it\n\nNamed by you"}
    workspace = 'sandbox_mode = "workspace-write"'
    script = ([call("c1", "request_permissions", wanted)], [say("done")])
    with fake_model(place, *script, top=workspace), acp(place, decide=choose("yes")) as client:
        client.prompt(client.open(place), "go")

    [question] = client.questions
    assert question["toolCall"]["title"] == "Let commands use the network for the rest of this turn"
    assert texts(question["toolCall"]) == ["Model: to fetch it␊␊Named by you"]


def test_a_client_with_notices_gets_warnings_as_notices(place: Place) -> None:
    with fake_model(place, [say("done")], top="nosuch = 1"), acp(place, session={"notices": {}}) as client:
        client.prompt(client.open(place), "go")
        finished = client.close()

    [notice] = client.updates("notice")
    assert (notice["severity"], "`nosuch`" in notice["title"]) == ("warning", True)
    assert client.said("agent_thought_chunk") == ""
    assert finished.err.startswith("warning: ")


def test_a_yes_for_the_project_is_kept_for_later_sessions(place: Place) -> None:
    top = 'approval_policy = "untrusted"\nsandbox_mode = "workspace-write"'
    touch = [call("c1", "exec_command", {"cmd": "touch made", "login": False})]
    with FakeResponses(touch, [say("one")], touch, [say("two")], excuse={"threads"}) as model:
        use(place, model, top)
        with acp(place, decide=choose("project")) as client:
            client.prompt(client.open(place), "go")
            client.close()
        with acp(place) as again:
            again.prompt(again.open(place), "go")

    [question] = client.questions
    assert [(one["optionId"], one["kind"]) for one in question["options"]] == [
        ("once", "allow_once"),
        ("session", "allow_always"),
        ("project", "allow_always"),
        ("always", "allow_always"),
        ("no", "reject_once"),
    ]
    assert question["options"][2]["name"] == "Yes, and from now on in this project (touch made …)"
    assert again.questions == []
    assert [one["status"] for one in again.calls()] == ["completed"]


def test_damaged_sessions_are_said_to_be_left_out(place: Place) -> None:
    with FakeResponses([say("ok")], [say("ok")], excuse={"threads"}) as model:
        use(place, model)
        assert run(place, "exec", "one").status == 0
        assert run(place, "exec", "two").status == 0
        first, second = sorted(place.rollouts())
        first.write_bytes(b"damaged\n" + first.read_bytes())
        with acp(place) as client:
            listed = client.ask("session/list")
            client.close()
    line = "1 damaged session is not listed; `codex-py sessions list --all` names it"
    assert [session["sessionId"] for session in listed["sessions"]] == [second.stem[-36:]]
    assert listed["_meta"] == {"codex-py/warning": line}


def test_a_session_is_renamed_while_it_is_open(place: Place) -> None:
    with (
        fake_model(place, [say("ok")], [say("The Lexer")], excuse={"threads", "prefix", "tools"}),
        acp(place) as client,
    ):
        session = client.open(place)
        with pytest.raises(Refused, match="send a message first"):
            client.prompt(session, "/rename early")
        client.prompt(session, "hello")
        with pytest.raises(Refused, match="must not be empty"):
            client.prompt(session, "/rename")
        client.prompt(session, "/rename  the   parser ")
        client.prompt(session, "/rename auto")
        [listed] = client.ask("session/list")["sessions"]
        titles = [update["title"] for update in client.updates("session_info_update")]
    assert (titles, listed["title"]) == (["hello", "the parser", "The Lexer"], "The Lexer")

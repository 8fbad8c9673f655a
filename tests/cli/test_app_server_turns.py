"""Turns of `codex-py app-server`, from the input of a client to its notifications."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.support.app_client import app_server, command, deciding, refusal, shape_of
from tests.support.fake_responses import (
    api_error,
    call,
    completed,
    custom_call,
    cut,
    delta,
    fake_model,
    reasoning,
    reasoning_delta,
    repeat,
    say,
    tokens,
)
from tests.support.home import MODEL, Place

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** Update File: README.md\n@@\n-# Demo\n+# Other\n*** End Patch\n"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
ITEMS = ("item/started", "item/agentMessage/delta", "item/completed")
GIF = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def test_a_turn_is_reported_from_its_beginning_to_its_end(place: Place) -> None:
    script = (
        [reasoning("blob", "Thinking"), delta("Hel"), delta("lo"), say("Hello"), command("c1", "echo hi")],
        [custom_call("p1", "apply_patch", PATCH)],
        [say("done"), completed(tokens(100, 10, cached=40, reasoning=5))],
    )
    with fake_model(place, *script) as model, app_server(place) as client:
        thread = client.open(place)
        turn = client.turn(thread, "go")
        client.close()

    assert [one["method"] for one in client.notifications if one["method"] in ITEMS] == [
        *("item/started", "item/completed"),
        *("item/started", "item/completed"),
        *("item/started", "item/agentMessage/delta", "item/agentMessage/delta", "item/completed"),
        *("item/started", "item/completed"),
        *("item/started", "item/completed"),
        *("item/started", "item/completed"),
    ]
    ended = [one["item"] for one in client.notified("item/completed")]
    assert [one["type"] for one in ended] == [
        *("userMessage", "reasoning", "agentMessage", "commandExecution", "fileChange", "agentMessage"),
    ]
    assert ended[0]["content"] == [{"type": "text", "text": "go", "text_elements": []}]
    assert ended[1]["summary"] == ["Thinking"]
    assert "".join(one["delta"] for one in client.notified("item/agentMessage/delta")) == ended[2]["text"] == "Hello"
    assert (ended[3]["status"], ended[3]["exitCode"], ended[3]["aggregatedOutput"]) == ("completed", 0, "hi\n")
    assert ended[4]["changes"] == [
        {"path": str(place.repo / "new.txt"), "kind": {"type": "add"}, "diff": "x\n"},
        {
            "path": str(place.repo / "README.md"),
            "kind": {"type": "update", "move_path": None},
            "diff": "@@ -1,3 +1,3 @@\n-# Demo\n+# Other\n \n A small demo.\n",
        },
    ]
    assert (turn["status"], turn["error"], turn["items"][-1]["text"]) == ("completed", None, "done")
    usage = client.notified("thread/tokenUsage/updated")[-1]["tokenUsage"]["total"]
    assert (usage["totalTokens"], usage["cachedInputTokens"], usage["reasoningOutputTokens"]) == (110, 40, 5)
    statuses = [one["status"]["type"] for one in client.notified("thread/status/changed")]
    assert statuses == ["active", "idle"]
    assert model.requests[0].headers["originator"] == "test_client"


def test_a_failing_provider_is_an_error_and_a_failed_turn(place: Place) -> None:
    with fake_model(place, api_error(400, "the model is out")), app_server(place) as client:
        turn = client.turn(client.open(place), "go")
        client.close()

    [error] = client.notified("error")
    assert (error["willRetry"], error["error"]["message"]) == (False, "400 Bad Request: the model is out")
    assert (turn["status"], turn["error"]) == ("failed", error["error"])
    assert client.notified("thread/status/changed")[-1]["status"] == {"type": "systemError"}


def test_a_request_that_is_sent_again_is_an_error_that_will_be_retried(place: Place) -> None:
    with fake_model(place, [delta("half"), cut()], [delta("whole"), say("whole")]), app_server(place) as client:
        turn = client.turn(client.open(place), "go")
        client.close()

    assert [one["willRetry"] for one in client.notified("error")] == [True]
    assert [item["text"] for item in client.items("agentMessage")] == ["whole"]
    assert turn["status"] == "completed"


def test_a_command_of_the_users_own_is_reported_and_known_to_the_model(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")]) as model, app_server(place) as client:
        thread = client.open(place)
        client.turn(thread, "first")
        client.ask("thread/shellCommand", threadId=thread, command="echo from the user")
        client.wait(lambda: bool(client.items("commandExecution")))
        client.turn(thread, "second")
        client.close()

    [item] = client.items("commandExecution")
    assert (item["source"], item["status"], item["aggregatedOutput"]) == ("userShell", "completed", "from the user\n")
    assert "from the user" in "\n".join(model.requests[1].texts("user"))


def test_settings_change_between_turns_and_plans_are_only_made(place: Place) -> None:
    plan = {"mode": "plan", "settings": {"model": MODEL, "reasoning_effort": None, "developer_instructions": None}}
    script = [command("c1", "touch mark")], [say("<proposed_plan>\n1. do it\n</proposed_plan>")], [say("ok")]
    with fake_model(place, *script) as model, app_server(place) as client:
        thread = client.open(place)
        client.ask("thread/settings/update", threadId=thread, effort="low")
        client.turn(thread, "plan it", collaborationMode=plan)
        client.turn(thread, "now", collaborationMode={**plan, "mode": "default"})
        client.close()

    assert [request.body["reasoning"]["effort"] for request in model.requests] == ["low", "low", "low"]
    modes = [one["threadSettings"]["collaborationMode"]["mode"] for one in client.notified("thread/settings/updated")]
    assert modes == ["default", "plan", "default"]
    assert [item["text"] for item in client.items("plan")] == ["1. do it"]
    assert not (place.repo / "mark").exists()


def test_changes_are_reviewed_in_the_thread(place: Place) -> None:
    (place.repo / "README.md").write_text("changed\n")
    with fake_model(place, [say("looks good")]) as model, app_server(place) as client:
        thread = client.open(place)
        started = client.ask("review/start", threadId=thread, target={"type": "uncommittedChanges"})
        client.ended(started["turn"]["id"])
        unknown = refusal(client, "review/start", threadId=thread, target={"type": "commit", "sha": "nothere"})
        client.close()

    assert started["reviewThreadId"] == thread
    assert "Review the uncommitted changes" in model.requests[0].texts("user")[-1]
    assert unknown[0] == -32600


def test_an_interrupted_turn_is_over_and_the_thread_goes_on(place: Place) -> None:
    with (
        fake_model(place, [command("c1", "sleep 1000", yield_time_ms=30000)], [say("back")]) as model,
        app_server(place) as client,
    ):
        thread = client.open(place)
        turn = client.begin_turn(thread, "wait")
        client.next("item/started", lambda params: params["item"]["type"] == "commandExecution")
        assert refusal(client, "turn/interrupt", threadId=thread, turnId="other") == (
            -32600,
            f"expected active turn id `other` but found `{turn}`",
        )
        client.ask("turn/interrupt", threadId=thread, turnId=turn)
        ended = client.ended(turn)
        assert refusal(client, "turn/interrupt", threadId=thread, turnId=turn) == (
            -32600,
            "no active turn to interrupt",
        )
        again = client.turn(thread, "and now?")
        client.close()

    assert (ended["status"], again["status"]) == ("interrupted", "completed")
    assert "aborted" in model.requests[1].output_of("c1")


def test_what_is_said_to_a_running_turn_reaches_its_next_request(place: Place) -> None:
    gate = place.home / "gate"
    with (
        fake_model(place, [command("c1", f"until [ -e {gate} ]; do sleep 0.01; done")], [say("both")]) as model,
        app_server(place) as client,
    ):
        thread = client.open(place)
        turn = client.begin_turn(thread, "wait")
        client.next("item/started", lambda params: params["item"]["type"] == "commandExecution")
        said = [{"type": "text", "text": "steered"}]
        assert refusal(client, "turn/steer", threadId=thread, expectedTurnId="other", input=said)[0] == -32600
        steered = client.ask("turn/steer", threadId=thread, expectedTurnId=turn, input=said)
        joined = client.begin_turn(thread, "joined")
        gate.touch()
        client.ended(turn)
        client.close()

    assert steered == {"turnId": turn}
    assert joined == turn
    assert model.requests[1].texts("user")[-2:] == ["steered", "joined"]
    texts = [item["content"][0]["text"] for item in client.items("userMessage")]
    assert texts == ["wait", "steered", "joined"]


def test_settings_of_a_turn_hold_for_those_after_it(place: Place) -> None:
    (place.repo / "sub").mkdir()
    with fake_model(place, [say('{"a": 1}')], repeat([say("ok")])) as model, app_server(place) as client:
        thread = client.open(place)
        client.turn(
            thread,
            "one",
            cwd=str(place.repo / "sub"),
            model="gpt-5.2",
            effort="high",
            approvalPolicy="on-request",
            sandboxPolicy={"type": "workspaceWrite", "writableRoots": [str(place.home)], "networkAccess": True},
            outputSchema=SCHEMA,
        )
        client.turn(thread, "two")
        client.close()

    [changed] = client.notified("thread/settings/updated")
    settings = changed["threadSettings"]
    assert (settings["cwd"], settings["model"], settings["effort"]) == (str(place.repo / "sub"), "gpt-5.2", "high")
    assert settings["approvalPolicy"] == "on-request"
    assert settings["sandboxPolicy"]["writableRoots"] == [str(place.home)]
    first, second = model.requests
    assert [one.body["model"] for one in (first, second)] == ["gpt-5.2", "gpt-5.2"]
    assert [one.body["reasoning"]["effort"] for one in (first, second)] == ["high", "high"]
    assert first.body["text"]["format"]["schema"] == SCHEMA
    assert "format" not in second.body.get("text", {})
    assert str(place.home) in "\n".join(first.texts("developer"))


def test_pictures_and_skills_go_into_a_turn(place: Place) -> None:
    skill = place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    pixel = place.write("p.gif", base64.b64decode(GIF.partition(",")[2]))
    content = [
        {"type": "text", "text": "look"},
        {"type": "image", "url": GIF},
        {"type": "localImage", "path": str(pixel)},
        {"type": "skill", "name": "alpha", "path": str(skill)},
    ]
    with fake_model(place, [say("seen")]) as model, app_server(place) as client:
        thread = client.open(place)
        turn = client.ask("turn/start", threadId=thread, input=content)["turn"]["id"]
        client.ended(turn)
        missing = refusal(client, "turn/start", threadId=thread, input=[{"type": "localImage", "path": "/no/such.png"}])
        client.close()

    said = model.requests[0].input[-1]["content"]
    assert [part["type"] for part in said].count("input_image") == 2
    assert said[-1]["text"] == "look"
    assert "BODY" in "\n".join(model.requests[0].texts("user"))
    assert missing == (-32600, "cannot attach image `/no/such.png`: no such file")


@pytest.mark.parametrize("input_type", ["skill", "mention"])
@pytest.mark.parametrize(
    "path", ["{file}", "skill://{file}", "skill://alpha", ".agents/skills/alpha/SKILL.md", "skill://ns/beta"]
)
def test_a_skill_is_picked_by_its_file_and_by_its_name(place: Place, input_type: str, path: str) -> None:
    skill = place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    place.write(".agents/skills/tool/.codex-plugin/plugin.json", '{"name": "ns"}')
    place.write(".agents/skills/tool/skills/beta/SKILL.md", "---\nname: beta\ndescription: does b\n---\nBODY\n")
    pick = {"type": input_type, "name": "it", "path": path.format(file=skill)}
    with fake_model(place, [say("seen")]) as model, app_server(place) as client:
        thread = client.open(place)
        content = [{"type": "text", "text": "look"}, pick]
        client.ended(client.ask("turn/start", threadId=thread, input=content)["turn"]["id"])
        client.close()
    assert "BODY" in model.requests[0].texts("user")[-2]
    assert client.warnings() == []


def test_a_message_brings_suggestions_here_too(place: Place) -> None:
    for number in range(60):
        name = f"museum-{number:02}"
        place.write(f".agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: Guard museum {number}.\n---\n")
    place.write(
        ".agents/skills/zz-bill/SKILL.md", "---\nname: zz-bill\ndescription: Make a bill for a customer.\n---\n"
    )
    with (
        fake_model(place, [say("ok")], top="[skills]\nmax_context_tokens = 300\n") as model,
        app_server(place) as client,
    ):
        thread = client.open(place)
        text = {"type": "text", "text": "make a bill for the customer"}
        client.ended(client.ask("turn/start", threadId=thread, input=[text])["turn"]["id"])
        client.close()
    [item] = [text for text in model.requests[0].texts("developer") if text.startswith("<skill_suggestions>")]
    assert "- zz-bill: " in item


def test_the_settings_a_client_gives_count_like_flags(place: Place) -> None:
    with fake_model(place, [say("ok")]) as model, app_server(place, "-c", "model_verbosity=low") as client:
        config = {
            "model_reasoning_effort": "low",
            "sandbox_workspace_write": {"network_access": True},
            "model": None,
        }
        started = client.ask(
            "thread/start",
            cwd=str(place.repo),
            sandbox="workspace-write",
            config=config,
            baseInstructions="BASE",
            developerInstructions="DEV",
            ephemeral=True,
        )
        client.turn(started["thread"]["id"], "go")
        wrong = refusal(client, "thread/start", cwd=str(place.repo), config={"sandbox_mode": "everything"})
        nowhere = refusal(client, "thread/start", cwd="/no/such/directory")
        unread = refusal(client, "thread/read", threadId=started["thread"]["id"], includeTurns=True)
        client.close()

    assert started["sandbox"]["networkAccess"] is True
    assert (started["reasoningEffort"], started["thread"]["path"]) == ("low", None)
    body = model.requests[0].body
    assert (body["instructions"], body["reasoning"]["effort"]) == ("BASE", "low")
    assert "DEV" in "\n".join(model.requests[0].texts("developer"))
    assert wrong[0] == -32600
    assert "the client's request" in wrong[1]
    assert nowhere == (-32600, "`cwd` is not a directory: `/no/such/directory`")
    assert unread[1].startswith("the turns of an ephemeral thread are not kept")
    assert place.rollouts() == []


def test_messages_keep_their_fields(place: Place) -> None:
    """Clients read these: a field may be added, and then it is added to the list too."""
    plan = {"plan": [{"step": "one", "status": "in_progress"}], "explanation": "so"}
    outside = {"sandbox_permissions": "require_escalated", "justification": "it must"}
    script = (
        [
            reasoning_delta("Th"),
            reasoning("blob", "Thinking"),
            delta("o"),
            say("on it"),
            call("u1", "update_plan", plan),
        ],
        [command("c1", "seq 1 100000; sleep 0.1; echo end", **outside), custom_call("p1", "apply_patch", PATCH)],
        [say("done"), completed(tokens(100, 10))],
    )
    shapes: dict[str, list[str]] = {}
    with (
        fake_model(place, *script),
        app_server(place, decide=deciding(requestApproval={"decision": "accept"})) as client,
    ):
        started = client.ask("thread/start", cwd=str(place.repo), sandbox="read-only", approvalPolicy="on-request")
        thread = started["thread"]["id"]
        client.turn(thread, "go", summary="auto")
        results = {
            "thread/start": started,
            "thread/read": client.ask("thread/read", threadId=thread, includeTurns=True),
            "thread/list": client.ask("thread/list"),
            "model/list": client.ask("model/list"),
            "account/read": client.ask("account/read"),
            "command/exec": client.ask("command/exec", command=["true"]),
        }
        client.close()
    messages = [(one["method"], one["params"]) for one in (*client.notifications, *client.requests)]
    for name, value in (*messages, *((f"{name} result", result) for name, result in results.items())):
        shapes[name] = sorted({*shapes.get(name, ()), *shape_of(value)})

    golden = Path(__file__).parents[1] / "golden/app_server.json"
    assert shapes == json.loads(golden.read_text())

"""Hooks around what a client of `codex-py app-server` has done: they fire there as they do in a terminal."""

from __future__ import annotations

from tests.support.agents import cast, spawn, wait
from tests.support.app_client import app_server, deciding
from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.hooks import NO_PUSH, entry, hook_inputs, noting, saying, use_hooks, write_script
from tests.support.script import shell

BLOCKED = "blocked by a PreToolUse hook: BLOCKED: git push is not allowed"


def test_a_hook_blocks_a_push_wherever_a_command_has_it(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")])
    parts = {
        "go": [
            [shell("c1", "git push")],
            [shell("c2", "cd . && bash -c \"bash -c 'git push origin'\"")],
            [spawn("s1", "push it")],
            [wait("w1", "agent-1")],
            [say("done")],
        ],
        "push it": [[shell("c3", "git push --force")], [say("could not")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url)
        with app_server(place) as client:
            client.turn(client.open(place), "go")
            client.close()

    theirs = model.of("go")
    assert [theirs[1].output_of("c1"), theirs[2].output_of("c2")] == [BLOCKED, BLOCKED]
    assert model.of("push it")[1].output_of("c3") == BLOCKED
    assert [item["status"] for item in client.items("commandExecution")] == ["declined", "declined"]
    blocked = [message for message in client.warnings() if "PreToolUse hook blocked" in message]
    assert len(blocked) == 3


def test_hooks_fire_at_every_point_of_a_threads_life(place: Place) -> None:
    skill = place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    more = saying({"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "MORE TO KNOW"}})
    use_hooks(
        place,
        SessionStart=[entry(noting(place))],
        UserPromptSubmit=[entry(noting(place)), entry(more)],
        SkillUse=[entry(noting(place))],
        Stop=[entry(noting(place))],
        SessionEnd=[entry(noting(place))],
    )
    with fake_model(place, [say("ok")]) as model, app_server(place) as client:
        thread = client.open(place)
        client.turn(thread, "use $alpha")
        before = [one["hook_event_name"] for one in hook_inputs(place)]
        finished = client.close()

    heard = {one["hook_event_name"]: one for one in hook_inputs(place)}
    assert "SessionEnd" not in before
    assert set(heard) == {"SessionStart", "UserPromptSubmit", "SkillUse", "Stop", "SessionEnd"}
    assert (heard["SessionStart"]["source"], heard["SessionStart"]["session_id"]) == ("startup", thread)
    assert heard["UserPromptSubmit"]["prompt"] == "use $alpha"
    assert (heard["SkillUse"]["skill_name"], heard["SkillUse"]["skill_path"]) == ("alpha", str(skill))
    assert heard["Stop"]["last_assistant_message"] == "ok"
    assert any("MORE TO KNOW" in text for role in ("user", "developer") for text in model.requests[0].texts(role))
    assert (finished.status, finished.err) == (0, "")


def test_a_hook_decides_before_the_client_is_asked(place: Place) -> None:
    decision = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}
    use_hooks(place, PermissionRequest=[entry(saying(decision), "Bash")])
    mark = place.home / "mark"
    outside = {"sandbox_permissions": "require_escalated", "justification": "it must"}
    with (
        fake_model(place, [shell("c1", f"touch {mark}", **outside)], [say("done")]),
        app_server(place, decide=deciding(requestApproval={"decision": "decline"})) as client,
    ):
        client.turn(client.open(place, sandbox="read-only", approvalPolicy="on-request"), "go")
        client.close()

    assert client.requests == []
    assert mark.exists()


def test_a_prompt_that_a_hook_refuses_never_reaches_the_model(place: Place) -> None:
    use_hooks(place, UserPromptSubmit=[entry("echo not that >&2; exit 2")])
    with fake_model(place), app_server(place) as client:
        turn = client.turn(client.open(place), "go")
        client.close()

    assert turn["status"] == "failed"
    assert "not that" in turn["error"]["message"]

"""Threads, skills, settings and single commands of `codex-py app-server`: what is stored, listed and changed."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
from typing import Any

import pytest

from tests.support.agents import cast, spawn, wait
from tests.support.app_client import AppClient, app_server, command, refusal
from tests.support.fake_responses import fake_model, hang, reasoning, repeat, say
from tests.support.home import MODEL, Place
from tests.support.process import run


def test_a_thread_read_later_has_the_items_that_were_reported(place: Place) -> None:
    script = ([reasoning("blob", "Thinking"), say("one"), command("c1", "echo hi")], [say("two")])
    with fake_model(place, *script), app_server(place) as client:
        thread = client.open(place)
        turn = client.turn(thread, "go")
        [read] = client.ask("thread/read", threadId=thread, includeTurns=True)["thread"]["turns"]
        bare = client.ask("thread/read", threadId=thread)["thread"]
        page = client.ask("thread/turns/list", threadId=thread)
        client.close()

    result = [one["item"] for one in client.notified("item/completed")]
    assert (read["id"], read["status"], read["itemsView"]) == (turn["id"], "completed", "full")
    assert [(one["id"], one["type"]) for one in read["items"]] == [(one["id"], one["type"]) for one in result]
    assert [one.get("text") for one in read["items"]] == [one.get("text") for one in result]
    assert (bare["turns"], bare["preview"], bare["status"]) == ([], "go", {"type": "idle"})
    assert (page["data"], page["nextCursor"]) == ([read], None)


def test_threads_of_agents_are_listed_when_they_are_asked_for(place: Place) -> None:
    parts = {"go": [[spawn("s1", "look at a")], [wait("w1", "agent-1")], [say("done")]], "look at a": [[say("fine")]]}
    with cast(parts) as model:
        place.use_model(model.base_url)
        with app_server(place) as client:
            thread = client.open(place)
            client.turn(thread, "go")
            none: list[str] = []
            kinds = (none, ["vscode"], ["subAgent"], ["subAgentThreadSpawn"], ["vscode", "subAgent"], ["exec"])
            found = [client.ask("thread/list", sourceKinds=one)["data"] for one in kinds]
            client.close()

    [agent] = client.items("collabAgentToolCall")[0]["receiverThreadIds"]
    assert [[one["id"] for one in some] for some in found] == [
        *([thread], [thread], [agent], [agent]),
        *([agent, thread], []),
    ]


def test_threads_go_on_beside_each_other(place: Place) -> None:
    held = threading.Event()

    def answer(request: Any) -> Any:
        return [hang(held), say("slow")] if "slow" in request.texts("user")[-1] else [say("quick")]

    with fake_model(place, repeat(answer), excuse={"threads"}), app_server(place) as client:
        slow, quick = client.open(place), client.open(place)
        waiting = client.begin_turn(slow, "slow")
        ended = client.turn(quick, "quick")
        assert client.ask("thread/read", threadId=slow)["thread"]["status"]["type"] == "active"
        held.set()
        client.ended(waiting)
        loaded = client.ask("thread/loaded/list")["data"]
        client.close()

    assert ended["items"][-1]["text"] == "quick"
    assert loaded == [slow, quick]


def test_a_thread_of_the_server_goes_on_elsewhere_and_the_other_way_round(place: Place) -> None:
    # Who can ask offers its model more tools.
    with fake_model(place, [say("one")], [say("two")], [say("three")], excuse={"threads", "tools"}) as model:
        with app_server(place) as client:
            thread = client.open(place)
            client.turn(thread, "first")
            client.close()
        run(place, "exec", "resume", thread, "second")
        with app_server(place) as client:
            resumed = client.ask("thread/resume", threadId=thread)
            client.turn(thread, "third")
            client.close()

    assert model.requests[2].texts("assistant") == ["one", "two"]
    assert [len(turn["items"]) for turn in resumed["thread"]["turns"]] == [2, 2]
    assert resumed["cwd"] == str(place.repo)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_stored_thread_is_json_however_its_lines_are_laid_out(place: Place, reverse: bool) -> None:
    with fake_model(place, [say("one")], [say("two")], [say("three")], excuse={"threads", "tools"}) as model:
        run(place, "exec", "first")
        [path] = place.rollouts()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        lines = [dict(reversed(line.items())) for line in lines] if reverse else lines
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        thread = path.stem[-36:]
        with app_server(place) as client:
            [listed] = client.ask("thread/list", sourceKinds=["exec"])["data"]
            resumed = client.ask("thread/resume", threadId=thread)
            client.turn(thread, "second")
            client.close()
        ended = run(place, "exec", "resume", "--last", "third")

    assert (listed["id"], listed["preview"], listed["model"]) == (thread, "first", MODEL)
    assert [turn["status"] for turn in resumed["thread"]["turns"]] == ["completed"]
    assert model.requests[2].texts("assistant") == ["one", "two"]
    assert (ended.status, ended.out, "damaged" in ended.err) == (0, "three\n", False)


def test_a_live_thread_that_is_resumed_takes_other_settings(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")]) as model, app_server(place) as client:
        thread = client.open(place)
        client.turn(thread, "first")
        resumed = client.ask("thread/resume", threadId=thread, model="gpt-5.2", approvalPolicy="on-request")
        client.turn(thread, "second")
        client.close()

    assert (resumed["model"], resumed["approvalPolicy"]) == ("gpt-5.2", "on-request")
    assert [turn["status"] for turn in resumed["thread"]["turns"]] == ["completed"]
    assert [request.body["model"] for request in model.requests] == [MODEL, "gpt-5.2"]


def test_a_fork_leaves_at_a_turn(place: Place) -> None:
    with (
        fake_model(place, [say("one")], [say("two")], [say("other")], excuse={"threads"}) as model,
        app_server(place) as client,
    ):
        thread = client.open(place)
        first = client.turn(thread, "first")
        client.turn(thread, "second")
        forked = client.ask("thread/fork", threadId=thread, lastTurnId=first["id"])["thread"]
        client.turn(forked["id"], "instead")
        unknown = refusal(client, "thread/fork", threadId=thread, lastTurnId="none")
        client.close()

    assert (forked["forkedFromId"], [turn["id"] for turn in forked["turns"]]) == (thread, [first["id"]])
    assert model.requests[2].texts("assistant") == ["one"]
    assert unknown == (-32600, f"no turn `none` in thread {thread}")


def test_damaged_threads_are_said_to_be_left_out(place: Place) -> None:
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}):
        assert run(place, "exec", "one").status == 0
        assert run(place, "exec", "two").status == 0
        first, second = sorted(place.rollouts())
        first.write_bytes(b"damaged\n" + first.read_bytes())
        with app_server(place) as client:
            listed = client.ask("thread/list")["data"]
            client.ask("thread/list", cursor="9999|x")
            client.close()
        assert [thread["id"] for thread in listed] == [second.stem[-36:]]
        line = "1 damaged session is not listed; `codex-py sessions list --all` names it"
        assert client.notified("warning") == [{"threadId": None, "message": line}]


def test_stored_threads_are_listed_named_and_put_away(place: Place) -> None:
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}), app_server(place) as client:
        first, second = client.open(place), client.open(place)
        client.turn(first, "about cats")
        client.turn(second, "about dogs")
        client.ask("thread/name/set", threadId=first, name="cats")
        page = client.ask("thread/list", limit=1)
        rest = client.ask("thread/list", limit=1, cursor=page["nextCursor"])
        found = client.ask("thread/list", searchTerm="CATS", cwd=[str(place.repo)], modelProviders=["fake"])
        elsewhere = client.ask("thread/list", cwd=str(place.home))
        client.ask("thread/archive", threadId=first)
        archived = client.ask("thread/list", archived=True)
        gone = refusal(client, "thread/resume", threadId=first)
        back = client.ask("thread/unarchive", threadId=first)["thread"]
        client.ask("thread/delete", threadId=first)
        left = client.ask("thread/list")
        client.close()

    assert [one["id"] for one in (*page["data"], *rest["data"])] == [second, first]
    assert rest["nextCursor"] is None
    assert [(one["id"], one["name"], one["source"]) for one in found["data"]] == [(first, "cats", "vscode")]
    assert (elsewhere["data"], [one["id"] for one in archived["data"]]) == ([], [first])
    assert gone == (-32600, f"session {first} is archived: `thread/unarchive` brings it back")
    assert (back["id"], [one["id"] for one in left["data"]]) == (first, [second])
    assert [one["threadName"] for one in client.notified("thread/name/updated")] == ["cats"]
    for method in ("thread/archived", "thread/unarchived", "thread/deleted"):
        assert client.notified(method) == [{"threadId": first}]


def test_a_thread_is_compacted(place: Place) -> None:
    with fake_model(place, [say("one")], [say("SUMMARY")], [say("two")]) as model, app_server(place) as client:
        thread = client.open(place)
        client.turn(thread, "first")
        client.ask("thread/compact/start", threadId=thread)
        client.wait(lambda: len(client.notified("turn/completed")) == 2)
        client.turn(thread, "second")
        client.close()

    [compacted] = client.items("contextCompaction")
    assert compacted["completedAtMs"] >= compacted["startedAtMs"]
    assert "SUMMARY" in "\n".join(model.requests[2].texts("user"))


def test_single_commands_run_in_the_sandbox(place: Place) -> None:
    script = "echo out; echo err >&2; echo x > new; exit 3"
    with app_server(place) as client:
        # Ten seconds, without a limit, are not enough for a sandbox on a machine that is busy.
        held = client.ask("command/exec", command=["sh", "-c", script], cwd=str(place.repo), timeoutMs=60_000)
        free = client.ask(
            "command/exec",
            timeoutMs=60_000,
            command=["sh", "-c", f"{script}; echo $MARK"],
            cwd=str(place.repo),
            sandboxPolicy={"type": "dangerFullAccess"},
            env={"MARK": "set", "HOME": None},
        )
        late = client.ask("command/exec", command=["sleep", "1000"], cwd=str(place.repo), timeoutMs=50)
        missing = refusal(
            client, "command/exec", command=["no-such-program"], sandboxPolicy={"type": "dangerFullAccess"}
        )
        number = client.begin(
            "command/exec",
            command=["cat"],
            cwd=str(place.repo),
            processId="p",
            streamStdin=True,
            streamStdoutStderr=True,
            disableTimeout=True,
        )
        client.ask("command/exec/write", processId="p", deltaBase64="aGVsbG8=")
        client.next("command/exec/outputDelta")
        client.ask("command/exec/terminate", processId="p")
        killed = client.answer(number)
        client.close()

    assert (held["exitCode"], held["stdout"]) == (3, "out\n")
    assert "Read-only file system" in held["stderr"] or "Permission denied" in held["stderr"]
    assert (free["exitCode"], (place.repo / "new").read_text()) == (3, "x\n")
    assert late["exitCode"] == 124
    assert missing[1].startswith("cannot run `no-such-program`")
    assert client.notified("command/exec/outputDelta")[0]["deltaBase64"] == "aGVsbG8="
    assert (killed["exitCode"], killed["stdout"]) == (137, "")


def test_a_command_that_is_stopped_ends_though_something_holds_its_output_open(place: Place) -> None:
    script = "setsid sh -c 'echo $$; exec sleep 300' & exec cat"
    with app_server(place) as client:
        number = client.begin(
            "command/exec",
            command=["sh", "-c", script],
            cwd=str(place.repo),
            processId="p",
            streamStdin=True,
            streamStdoutStderr=True,
            disableTimeout=True,
            sandboxPolicy={"type": "dangerFullAccess"},
        )
        printed = client.next("command/exec/outputDelta")["deltaBase64"]
        client.ask("command/exec/terminate", processId="p")
        killed = client.answer(number)
        os.kill(int(base64.b64decode(printed)), signal.SIGKILL)
        client.close()
    assert killed["exitCode"] == 137


def test_skills_are_listed_switched_and_found_in_more_directories(place: Place) -> None:
    place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    bad = place.write(".agents/skills/bad/SKILL.md", "---\nname: bad\n---\n")
    more = place.home / "more/beta/SKILL.md"
    more.parent.mkdir(parents=True)
    more.write_text("---\nname: beta\ndescription: does beta\n---\nBETA\n")

    def listed(client: AppClient, **params: Any) -> dict[str, bool]:
        [entry] = client.ask("skills/list", cwds=[str(place.repo)], **params)["data"]
        return {one["name"]: one["enabled"] for one in entry["skills"] if one["scope"] != "system"}

    with fake_model(place, repeat([say("ok")])) as model, app_server(place) as client:
        thread = client.open(place)
        [entry] = client.ask("skills/list", cwds=[str(place.repo)])["data"]
        assert entry["errors"] == [{"path": str(bad), "message": "missing field `description`"}]
        assert listed(client) == {"alpha": True}
        assert client.ask("skills/config/write", name="alpha", enabled=False) == {"effectiveEnabled": False}
        client.ask("skills/extraRoots/set", extraRoots=[str(place.home / "more")])
        assert listed(client, forceReload=True) == {"alpha": False, "beta": True}
        client.turn(thread, "use $alpha and $beta")
        elsewhere = client.ask("skills/list", cwds=["/no/such"])["data"]
        client.close()

    said = "\n".join(model.requests[0].texts("user"))
    assert ("BODY" in said, "BETA" in said) == (False, True)
    assert client.notified("skills/changed") == [{}, {}]
    assert elsewhere == [
        {"cwd": "/no/such", "skills": [], "errors": [{"path": "/no/such", "message": "not a directory"}]}
    ]


def test_a_change_of_skills_on_disk_is_reported(place: Place) -> None:
    place.use_model("http://127.0.0.1:9/v1")
    with app_server(place) as client:
        thread = client.open(place)
        # A later request about the thread is answered after the first look at its skills.
        client.ask("thread/read", threadId=thread)
        place.write(".agents/skills/late/SKILL.md", "---\nname: late\ndescription: comes late\n---\n")
        client.next("skills/changed")
        [entry] = client.ask("skills/list", cwds=[str(place.repo)])["data"]
        client.close()

    assert "late" in [one["name"] for one in entry["skills"]]


def test_settings_models_and_the_login_are_reported_without_secrets(place: Place) -> None:
    key = "sk-test-0123456789abcdef"
    with fake_model(place, http_headers={"X-Secret": "very-secret-value"}):
        secretive = place.with_env(OPENAI_API_KEY=key)
        with app_server(secretive) as client:
            read = client.ask("config/read", cwd=str(place.repo), includeLayers=True)
            models = client.ask("model/list")["data"]
            account = client.ask("account/read")
            theirs = client.ask("model/list", modelProvider="openai", limit=2)
            variables = client.ask("command/exec", command=["env"])["stdout"]
            finished = client.close()

    assert read["config"]["model_provider"] == "fake"
    assert read["origins"]["model"]["name"] == {
        "type": "user",
        "file": str(place.codex_home / "config.toml"),
        "profile": None,
    }
    assert models[0]["isDefault"] is True
    assert (len(theirs["data"]), theirs["nextCursor"]) == (2, "2")
    assert (account["account"], account["requiresOpenaiAuth"]) == (None, False)
    assert "PATH=" in variables
    assert key not in finished.out
    assert "very-secret-value" not in finished.out


def test_a_key_is_kept_and_forgotten(place: Place) -> None:
    with app_server(place) as client:
        assert client.ask("account/read")["account"] is None
        client.ask("account/login/start", type="apiKey", apiKey="sk-0123456789abcdef0123")
        assert client.ask("account/read")["account"] == {"type": "apiKey"}
        client.ask("account/logout")
        assert client.ask("account/read")["account"] is None
        assert refusal(client, "account/login/start", type="chatgpt")[0] == -32600
        finished = client.close()

    assert "0123456789abcdef" not in finished.out


def test_a_rollback_brings_back_the_conversation_and_the_files(place: Place) -> None:
    script = ([command("c1", "echo one > one.txt")], [say("one")], [command("c2", "echo two > two.txt")], [say("two")])
    excuse = {"threads", "prefix", "replay"}
    with (
        fake_model(place, *script, [say("three")], excuse=excuse, top='sandbox_mode = "workspace-write"') as model,
        app_server(place) as client,
    ):
        thread = client.open(place)
        client.turn(thread, "first")
        client.turn(thread, "second")
        dry = client.ask("thread/rollback", threadId=thread, numTurns=1, files=True, dryRun=True)
        assert (place.repo / "two.txt").exists()
        done = client.ask("thread/rollback", threadId=thread, numTurns=1, files=True)
        refused = refusal(client, "thread/rollback", threadId=thread, numTurns=0)
        client.turn(thread, "third")
        client.close()
    assert dry["files"]["deleted"] == done["files"]["deleted"] == ["two.txt"]
    assert (done["message"], len(done["thread"]["turns"])) == ("second", 1)
    assert "numTurns" in str(refused)
    assert ((place.repo / "one.txt").exists(), (place.repo / "two.txt").exists()) == (True, False)
    said = [text for text in model.requests[-1].texts("user") if not text.startswith("<")]
    assert said == ["first", "third"]

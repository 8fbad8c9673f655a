"""Agents in `exec`, as a script meets them."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

from tests.support.agents import answer_of, cast, spawn, wait
from tests.support.agents import run as run_command
from tests.support.fake_responses import api_error, call, completed, say, tokens
from tests.support.home import Place
from tests.support.process import is_running, run, start

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def agent_items(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The finished calls about agents."""
    items = [event["item"] for event in events if event["type"] == "item.completed"]
    return [item for item in items if item["type"] == "collab_tool_call"]


def test_a_script_reads_the_tasks_and_results_of_agents(place: Place) -> None:
    parts = {
        "go": [
            [spawn("s1", "look at a"), spawn("s2", "look at b")],
            [wait("w1", "agent-1", timeout_ms=60000), wait("w2", "agent-2", timeout_ms=60000)],
            [call("x1", "close_agent", {"target": "nobody"})],
            [say("done")],
        ],
        "look at a": [[run_command("c1", "echo from a >a.txt")], [say("a is fine")]],
        "look at b": [api_error(400, "b is out of luck")],
    }
    with cast(parts) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        ended = run(place, "exec", "--json", "go")
    assert ended.status == 0
    assert (place.repo / "a.txt").read_text() == "from a\n"
    last = model.of("go")[-1]
    one, two = (answer_of(last, call_id)["agent_id"] for call_id in ("s1", "s2"))
    [thread] = [event["thread_id"] for event in ended.events if event["type"] == "thread.started"]
    items = {(item["tool"], *item["receiver_thread_ids"]): item for item in agent_items(ended.events)}
    started = {"status": "pending_init", "message": None}
    failure = items["wait", two]["agents_states"][two]["message"]
    assert "b is out of luck" in failure
    expected = [
        ("spawn_agent", one, "look at a", started),
        ("spawn_agent", two, "look at b", started),
        ("wait", one, None, {"status": "completed", "message": "a is fine"}),
        ("wait", two, None, {"status": "errored", "message": failure}),
    ]
    for tool, agent, prompt, state in expected:
        assert items[tool, agent] == {
            "id": items[tool, agent]["id"],
            "type": "collab_tool_call",
            "tool": tool,
            "sender_thread_id": thread,
            "receiver_thread_ids": [agent],
            "prompt": prompt,
            "agents_states": {agent: state},
            "status": "completed",
        }
    refused = items["close_agent", "nobody"]
    assert (refused["status"], refused["agents_states"]["nobody"]["status"]) == ("failed", "not_found")
    assert refused["error"]["message"].startswith("there is no agent `nobody`")
    # Of what agents say, a script's events have nothing but this: the answer is the session's own.
    texts = [event["item"]["text"] for event in ended.events if event.get("item", {}).get("type") == "agent_message"]
    assert texts == ["done"]


def test_the_sessions_of_agents_are_listed_only_when_they_are_asked_for(place: Place) -> None:
    parts = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "look at a": [[say("a is fine"), completed(tokens(1000, 5))]],
        "and now?": [[say("still here")]],
    }
    with cast({task: parts[task] for task in ("go", "look at a")}) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        human = run(place, "exec", "go")
    assert (human.status, human.out) == (0, "done\n")
    assert "agent-1: works on: look at a" in human.err
    assert "a is fine" in human.err
    assert "\nagents: 1,005 tokens of their own\ncost: " in human.err
    listed = json.loads(run(place, "sessions", "list", "--json").out)
    everything = json.loads(run(place, "sessions", "list", "--json", "--agents").out)
    assert [one["first_prompt"] for one in listed] == ["go"]
    [thread] = [one["id"] for one in listed]
    result = {one["first_prompt"]: (one["source"], one["parent"]) for one in everything}
    assert result == {"go": ("exec", None), "look at a": ("subagent", thread)}
    [agent] = [one["id"] for one in everything if one["parent"]]
    assert re.search(rf"^agent: +agent-1 of {thread}$", run(place, "sessions", "show", agent).out, re.MULTILINE)
    # The newest session is not that of the agent.
    with cast({"and now?": parts["and now?"]}) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        assert run(place, "exec", "resume", "--last", "and now?").out == "still here\n"
    assert model.requests[0].thread == thread


def test_nothing_of_an_agent_is_asked_where_nobody_answers(place: Place) -> None:
    touch = run_command("c1", "touch made", sandbox_permissions="require_escalated", justification="please")
    parts = {
        "go": [[spawn("s1", "touch it")], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "touch it": [[touch], [say("could not")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url, 'sandbox_mode = "read-only"\napproval_policy = "on-request"\n')
        ended = run(place, "exec", "go")
    assert ended.status == 0
    assert not (place.repo / "made").exists()
    assert model.of("touch it")[1].output_of("c1").startswith("escalated permissions are not available")


def test_no_command_of_an_agent_outlives_an_interrupted_run(place: Place) -> None:
    for name in ("started", "never"):
        os.mkfifo(place.repo / name)
    parts = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1", timeout_ms=60000)]],
        "look at a": [[run_command("c1", "echo $$ >started; cat never")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        with start(place, "exec", "go") as running:
            pid = int((place.repo / "started").read_text())
            model.wait_for(3)
            running.send_signal(signal.SIGINT)
            ended = running.wait()
    assert ended.status == 130
    assert not is_running(pid)


def test_an_agent_left_at_work_ends_with_the_run(place: Place) -> None:
    for name in ("started", "never"):
        os.mkfifo(place.repo / name)
    parts = {
        "go": [[spawn("s1", "look at a")], [say("done")]],
        "look at a": [[run_command("c1", "echo $$ >started; cat never")]],
    }
    with cast(parts) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        ended = run(place, "exec", "go")
    assert (ended.status, ended.out) == (0, "done\n")
    assert "1 agent was still at work and stopped: agent-1" in ended.err

"""Agents at work: what their sessions and the one that started them see of each other, and what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion, OverrideTurnContext
from tests.support.agents import answer_of, cast, changes, run, spawn, standing, wait
from tests.support.bodies import user
from tests.support.fake_responses import Request, api_error, call, delta, hang, reasoning, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.process import is_running
from tests.support.rollout import read_rollout, recorded_events
from tests.support.script import Answer as Refusal
from tests.support.script import Json, Stream
from tests.support.session import Watched, watched_session
from tests.support.skills import NO_BUNDLED, add_skill, repo_root, skill_text

ENDS = ("error", "task_complete", "turn_aborted")


def stop_when(watched: Watched, activity: str) -> None:
    """Stop an agent, as a user does who looks at it, as soon as it does something."""

    def listen(event: events.Event) -> None:
        if isinstance(event, events.AgentChanged) and activity in event.agent.activity:
            stopped = watched.session.agents.stop(event.agent.id)
            watched.tasks.append(asyncio.ensure_future(_awaited(stopped)))

    watched.session.subscribe(listen)


async def _awaited(stopped: Awaitable[bool]) -> None:
    await stopped


async def test_of_three_agents_at_work_one_ends_one_is_stopped_and_one_fails(place: Place) -> None:
    fifo(place, "never")
    # The three, and the request of the one that waits for them: what ends before that is told in another way.
    together = threading.Barrier(4)

    def at_once(*answer: Json) -> Callable[[Request], Stream]:
        def play(_: Request) -> Stream:
            together.wait(30)
            return answer

        return play

    def fail(_: Request) -> Refusal:
        together.wait(30)
        return api_error(400, "the third is out of luck")

    tasks = ["look at a", "look at b", "look at c"]
    names = ["agent-1", "agent-2", "agent-3"]
    numbered = list(enumerate(names, start=1))
    spawned = [spawn(f"s{number}", task) for number, task in enumerate(tasks, start=1)]
    waited = [wait(f"w{number}", name, timeout_ms=60000) for number, name in numbered]
    parts = {
        "go": [spawned, at_once(*waited), [say("all heard")], [say("still fine")]],
        "look at a": [at_once(run("c1", "echo a")), [say("a is fine")]],
        "look at b": [at_once(run("c1", "cat never"))],
        "look at c": [fail],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            stop_when(watched, "cat never")
            ended = await watched.say("go")
            thread = watched.session.thread_id
            await watched.say("and now?")
            before = watched.session.agents.states()
    # The server has checked of each thread that calls pair with outputs and that no byte of a prefix has changed.
    assert isinstance(ended, events.TurnCompleted)
    last = model.of("go")[2]
    ids = [answer_of(last, f"s{number}")["agent_id"] for number in (1, 2, 3)]
    assert [answer_of(last, f"s{number}")["nickname"] for number in (1, 2, 3)] == names
    assert [answer_of(last, f"w{number}") for number in (1, 2, 3)] == [
        {"status": {"agent-1": {"completed": "a is fine"}}, "timed_out": False},
        {"status": {"agent-2": "interrupted"}, "timed_out": False},
        {"status": {"agent-3": {"errored": before[2].message}}, "timed_out": False},
    ]
    assert "the third is out of luck" in (before[2].message or "")
    kinds = [one["type"] for one in last.input]
    assert kinds == ["message"] * 3 + (["function_call"] * 3 + ["function_call_output"] * 3) * 2
    # The model was told by the answers to its calls, and not a second time.
    assert b"subagent_notification" not in model.of("go")[3].input_bytes
    assert [state.id for state in before] == ids
    result = changes(watched)
    assert [[status for one, status in result if one == name] for name in names] == [
        ["pending_init", "running", "completed"],
        ["pending_init", "running", "interrupted"],
        ["pending_init", "running", "errored"],
    ]
    files = {read_rollout(path)[0].payload["id"]: path for path in place.rollouts()}
    assert sorted(files) == sorted([thread, *ids])
    metas = [read_rollout(files[one])[0].payload for one in ids]
    assert [(meta["parent_thread_id"], meta["agent_nickname"]) for meta in metas] == [(thread, name) for name in names]
    ends = [[kind for kind in recorded_events(files[one]) if kind in ENDS] for one in ids]
    assert ends == [["task_complete"], ["turn_aborted"], ["error", "task_complete"]]

    metadata = [json.loads(request.headers["x-codex-turn-metadata"]) for request in model.of("look at a")]
    root = json.loads(last.headers["x-codex-turn-metadata"])
    assert [one["thread_id"] for one in metadata] == [ids[0]] * 2
    about = {
        "session_id": thread,
        "parent_thread_id": thread,
        "parent_turn_id": root["turn_id"],
        "root_turn_id": root["turn_id"],
        "subagent_kind": "thread_spawn",
        "thread_source": "subagent",
    }
    assert [{key: one[key] for key in about} for one in metadata] == [about] * 2
    headers = model.of("look at a")[0].headers
    named = ("session-id", "thread-id", "x-codex-parent-thread-id", "x-openai-subagent")
    assert [headers[name] for name in named] == [thread, ids[0], thread, "collab_spawn"]
    assert (root["thread_source"], "parent_thread_id" in root) == ("user", False)

    # In a later run the agents are known as they ended, and each goes on where it was.
    again = {
        "go on": [
            [call(f"t{n}", "send_input", {"target": name, "message": f"more {n}"}) for n, name in numbered],
            [wait(f"v{n}", name, timeout_ms=60000) for n, name in numbered],
            [say("done")],
        ],
        **{f"more {n}": [[say(f"did {n}")]] for n, _ in numbered},
    }
    with cast(again) as model:
        async with watched_session(place, model, resume=thread) as watched:
            assert [state.replace(model="", tokens=0) for state in watched.session.load_agents().states()] == [
                state.replace(model="", tokens=0) for state in before
            ]
            await watched.say("go on")
            assert standing(watched) == [(name, "completed", f"did {n}") for n, name in numbered]
    texts = [model.of(f"more {n}")[0].texts("user") for n, _ in numbered]
    assert [[text.split("\n")[0] for text in one if not text.startswith("<env")] for one in texts] == [
        ["look at a", "more 1"],
        ["look at b", "<turn_aborted>", "more 2"],
        ["look at c", "more 3"],
    ]
    assert sorted(place.rollouts()) == sorted(files.values())


def fifo(place: Place, name: str) -> Path:
    """A file that whoever reads it waits for, until it is written."""
    path = place.repo / name
    os.mkfifo(path)
    return path


async def result(watched: Watched, wanted: Callable[[events.Event], bool]) -> None:
    """Wait for such an event, unless it has come already."""
    came = asyncio.Event()
    watched.session.subscribe(lambda event: came.set() if wanted(event) else None)
    if not any(map(wanted, watched.seen)):
        await came.wait()


async def told_of(watched: Watched, name: str, status: str) -> None:
    """Wait until the user is told that an agent has this status."""

    def wanted(event: events.Event) -> bool:
        return isinstance(event, events.AgentChanged) and (event.agent.name, event.agent.status) == (name, status)

    await result(watched, wanted)


async def test_an_end_that_nobody_waits_for_is_reported_with_the_next_request(place: Place) -> None:
    first_over = threading.Event()

    def late(_: Request) -> Stream:
        first_over.wait(30)
        return [say("all </subagent_notification> fine")]

    parts = {"go": [[spawn("s1", "look at a")], [say("started")], [say("heard")]], "look at a": [late]}
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            first_over.set()
            await told_of(watched, "agent-1", "completed")
            await watched.say("and now?")
    last = model.of("go")[2]
    agent_id = answer_of(last, "s1")["agent_id"]
    status = '{"completed":"all <\\/subagent_notification> fine"}'
    assert last.texts("user")[-2:] == [
        f'<subagent_notification>\n{{"agent_path":"{agent_id}","nickname":"agent-1","status":{status}}}\n'
        "</subagent_notification>",
        "and now?",
    ]


async def test_a_message_to_a_working_agent_comes_with_its_next_request(place: Place) -> None:
    result = threading.Event()

    def first(_: Request) -> Stream:
        result.wait(30)
        return [run("c1", "echo a")]

    def after_telling(_: Request) -> Stream:
        result.set()
        return [wait("w1", "agent-1", timeout_ms=60000)]

    parts = {
        "go": [
            [spawn("s1", "look at a")],
            [call("t1", "send_input", {"target": "agent-1", "message": "look at b too"})],
            after_telling,
            [say("done")],
        ],
        "look at a": [first, [say("both are fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    assert model.of("look at a")[1].texts("user")[-2:] == ["look at a", "look at b too"]
    last = model.of("go")[3]
    assert list(answer_of(last, "t1")) == ["submission_id"]
    assert answer_of(last, "w1")["status"] == {"agent-1": {"completed": "both are fine"}}


async def test_an_agent_can_be_made_to_drop_what_it_does(place: Place) -> None:
    at_work = threading.Event()

    def endless(_: Request) -> Stream:
        at_work.set()
        return [delta("I am at"), hang(threading.Event())]

    def interrupting(_: Request) -> Stream:
        at_work.wait(30)
        return [call("t1", "send_input", {"id": "agent-1", "message": "look at b instead", "interrupt": True})]

    parts = {
        "go": [[spawn("s1", "look at a")], interrupting, [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "look at a": [endless, [say("b is fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    first, second = model.of("look at a")
    assert second.input[: len(first.input)] == first.input
    assert [text.split(">")[0] for text in second.texts("user")[-2:]] == ["<turn_aborted", "look at b instead"]
    last = model.of("go")[3]
    assert answer_of(last, "w1")["status"] == {"agent-1": {"completed": "b is fine"}}
    # That it was interrupted is no news to who did it.
    assert not any('"interrupted"' in text for text in last.texts("user"))


async def test_what_the_user_has_narrowed_is_not_to_be_had_from_an_agent_that_began_before(place: Place) -> None:
    at_work = threading.Event()

    def endless(_: Request) -> Stream:
        at_work.set()
        return [delta("I am at"), hang(threading.Event())]

    more = {"target": "agent-1", "message": "touch made"}
    parts = {
        "go": [
            [spawn("s1", "look at a")],
            [say("it works")],
            [call("t1", "send_input", more)],
            [say("planned")],
            [call("t2", "send_input", more)],
            [call("t3", "send_input", {**more, "interrupt": True})],
            [wait("w1", "agent-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [endless, [run("c1", "touch made")], [say("it is not let")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            await asyncio.to_thread(at_work.wait, 30)
            await watched.session.submit(OverrideTurnContext(plan=True))
            await watched.say("plan it")
            await watched.session.submit(OverrideTurnContext(plan=False, sandbox="read-only"))
            await watched.say("now it is only to look")
    last = model.of("go")[-1]
    refused = (
        "the agent `agent-1` works on as it began, and may do more than this session by now: with `interrupt` it stops"
        " and goes on with what is allowed"
    )
    assert [last.output_of("t1"), last.output_of("t2")] == [refused, refused]
    assert answer_of(last, "w1")["status"] == {"agent-1": {"completed": "it is not let"}}
    assert not (place.repo / "made").exists()


async def test_closing_an_agent_ends_its_commands_and_it_can_be_called_back(place: Place) -> None:
    fifo(place, "never")
    parts = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1")], [say("done")]],
        "look at a": [[run("c1", "echo $$ >pid; cat never", yield_time_ms=250)], [say("it runs on")], [say("again")]],
        "close": [],
    }
    parts["go"] += [
        [call("x1", "close_agent", {"target": "agent-1"}), call("x2", "close_agent", {"target": "agent-1"})],
        [call("l1", "list_agents", {}), call("t1", "send_input", {"target": "agent-1", "message": "look again"})],
        [wait("w2", "agent-1", timeout_ms=60000)],
        [say("done")],
    ]
    with cast({task: plays for task, plays in parts.items() if plays}) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            pid = int((place.repo / "pid").read_text())
            assert is_running(pid)
            await watched.say("close it")
            assert not is_running(pid)
    last = model.of("go")[-1]
    agent_id = answer_of(last, "s1")["agent_id"]
    assert answer_of(last, "x1") == {"previous_status": {"completed": "it runs on"}}
    assert last.output_of("x2") == "the agent `agent-1` is closed already"
    assert answer_of(last, "l1") == {
        "agents": [
            {"agent_id": agent_id, "nickname": "agent-1", "task": "look at a", "agent_status": "shutdown"},
        ]
    }
    assert answer_of(last, "w2")["status"] == {"agent-1": {"completed": "again"}}


async def test_the_commands_of_agents_are_listed_under_their_names_and_stopped(place: Place) -> None:
    for name in ("never", "ever"):
        os.mkfifo(place.repo / name)
    parts = {
        "go": [
            [run("c1", "cat never", yield_time_ms=250), spawn("s1", "look at a", agent_type="worker")],
            [wait("w1", "worker-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [[run("c2", "echo $$ >pid; cat ever", yield_time_ms=250)], [say("it runs on")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            own, other = watched.session.processes()
            assert [(one.agent, one.command.split()[-1]) for one in (own, other)] == [
                ("", "never'"),
                ("agent worker-1", "ever'"),
            ]
            assert await watched.session.stop_process(other.id) is True
            assert not is_running(int((place.repo / "pid").read_text()))
            assert watched.session.processes()[0].id == own.id
            assert await watched.session.stop_process(other.id) is False


async def test_an_agent_that_is_called_back_is_reported_with_its_new_task(place: Place) -> None:
    parts = {
        "go": [
            [spawn("s1", "look at a")],
            [wait("w1", "agent-1", timeout_ms=60000)],
            [call("t1", "send_input", {"target": "agent-1", "message": "look at b"})],
            [wait("w2", "agent-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [[say("fine")], [say("fine too")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    begun = [one.agent for one in watched.of(events.AgentChanged) if one.agent.status == "running" != one.was]
    assert [agent.task for agent in begun] == ["look at a", "look at b"]


async def test_an_agent_that_is_called_back_thinks_as_hard_as_before(place: Place) -> None:
    parts = {
        "go": [
            [spawn("s1", "look at a", reasoning_effort="high")],
            [wait("w1", "agent-1", timeout_ms=60000)],
            [call("x1", "close_agent", {"target": "agent-1"})],
            [call("t1", "send_input", {"target": "agent-1", "message": "look again"})],
            [wait("w2", "agent-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [[say("fine")], [say("still fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    first, second = model.of("look at a")
    assert first.body["reasoning"] == second.body["reasoning"]
    assert first.body["reasoning"]["effort"] == "high"


async def test_calls_about_nothing_are_answered_with_what_there_is(place: Place) -> None:
    calls = [
        spawn("s1", "  "),
        spawn("s2", "look", agent_type="explorr"),
        spawn("s3", "look", skills=["lnit"]),
        call("s4", "spawn_agent", {}),
        wait("w1", "nobody"),
        call("w2", "wait_agent", {"targets": []}),
        call("t1", "send_input", {"target": "nobody", "message": "hello"}),
        call("x1", "close_agent", {"target": "nobody"}),
        call("l1", "list_agents", {}),
    ]
    add_skill(repo_root(place), "lint")
    with cast({"go": [calls, [say("done")]]}) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("go")
            assert watched.session.agents.states() == []
    last = model.of("go")[1]
    unknown = "there is no agent `nobody`; `list_agents` tells which there are"
    assert [last.output_of(one["item"]["call_id"]) for one in calls] == [
        "an agent cannot be sent an empty `message`",
        "unknown agent_type `explorr`: did you mean `explorer`? there are `explorer`, `worker`",
        "there is no skill `lnit`; the closest are `lint`",
        "`message` is missing",
        '{"status":{"nobody":"not_found"},"timed_out":false}',
        "`targets` is empty: name the agents to wait for",
        unknown,
        unknown,
        '{"agents":[]}',
    ]
    assert len(place.rollouts()) == 1


async def test_other_names_of_arguments_are_taken(place: Place) -> None:
    def wait_for_it(call_id: str) -> Json:
        return call(call_id, "wait_agent", {"ids": ["agent-1"], "timeout_ms": 60_000})

    more = call("i", "send_input", {"id": "agent-1", "message": "more"})
    closed = call("x", "close_agent", {"id": "agent-1"})
    parts = {
        "go": [[spawn("s", "look")], [wait_for_it("w1")], [more], [wait_for_it("w2")], [closed], [say("done")]],
        "look": [[say("one")], [say("two")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    last = model.of("go")[-1]
    answers = [answer_of(last, name) for name in ("w1", "w2", "x")]
    assert [answer.get("status", answer.get("previous_status")) for answer in answers] == [
        {"agent-1": {"completed": "one"}},
        {"agent-1": {"completed": "two"}},
        {"completed": "two"},
    ]
    assert "submission_id" in answer_of(last, "i")


async def test_a_fork_begins_with_all_that_was_said_to_the_byte(place: Place) -> None:
    parts = {
        "the word is xyzzy": [
            [run("c1", "echo hi")],
            [say("noted")],
            [reasoning("B"), spawn("s1", "what is the word?", fork_context=True)],
            [wait("w1", "agent-1", timeout_ms=60000)],
            [say("done")],
        ],
        "what is the word?": [[say("xyzzy")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("the word is xyzzy")
            await watched.say("ask somebody")
    asking = model.of("the word is xyzzy")[2]
    [fork] = model.of("what is the word?")
    assert fork.head == asking.head
    assert fork.part("tools") == asking.part("tools")
    assert fork.input_bytes.startswith(asking.input_bytes[:-1])
    assert fork.input[len(asking.input) :] == [user("what is the word?")]


async def test_interrupting_a_session_stops_its_agents_and_their_commands(place: Place) -> None:
    started = fifo(place, "started")
    parts = {
        "go": [[spawn("s1", "look at a")], [wait("w1", "agent-1", timeout_ms=60000)], [say("still here")]],
        "look at a": [[run("c1", "echo $$ >started; cat never")]],
    }
    fifo(place, "never")
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            turn = asyncio.create_task(watched.say("go"))
            pid = int(await asyncio.to_thread(started.read_text))
            await result(watched, lambda event: isinstance(event, events.AgentCallStarted) and event.tool == "wait")
            watched.session.interrupt()
            stopped = await turn
            await told_of(watched, "agent-1", "interrupted")
            assert not is_running(pid)
            await watched.say("and now?")
    assert isinstance(stopped, events.TurnInterrupted)
    last = model.of("go")[-1]
    assert last.output_of("w1") == "aborted"
    assert b"subagent_notification" not in last.input_bytes


async def test_an_interrupt_stops_the_agents_of_an_agent_that_has_ended(place: Place) -> None:
    for name in ("never", "for ever"):
        fifo(place, name)
    started = fifo(place, "started")
    parts = {
        "go": [[spawn("s1", "one")], [wait("w1", "agent-1", timeout_ms=60000)], [run("c1", "cat 'for ever'")]],
        "one": [[spawn("s1", "two")], [say("two is at it")]],
        "two": [[run("c1", "echo $$ >started; cat never")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, "agents.max_depth = 2\n") as watched:
            turn = asyncio.create_task(watched.say("go"))
            pid = int(await asyncio.to_thread(started.read_text))
            await result(watched, lambda event: isinstance(event, events.CommandStarted))
            watched.session.interrupt()
            await turn
            await told_of(watched, "agent-2", "interrupted")
            assert not is_running(pid)


async def test_an_interrupt_ends_the_wait_for_what_hooks_of_agents_still_do(place: Place) -> None:
    begun = fifo(place, "begun")
    use_hooks(place, SubagentStop=[entry(f"echo $$ > {begun}; sleep 300", None, **{"async": True})])
    parts = {
        "go": [[spawn("s1", "one")], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "one": [[say("one is done")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            turn = asyncio.create_task(watched.say("go"))
            pid = int(await asyncio.to_thread(begun.read_text))
            await turn
            closing = asyncio.create_task(watched.session.close())
            # Left alone it lasts ten seconds.
            async with asyncio.timeout(8):
                while not closing.done():
                    watched.session.interrupt()
                    await asyncio.wait([closing], timeout=0.05)
            assert not is_running(pid)


async def test_an_interrupt_takes_back_what_agents_wait_for_the_user_with(place: Place) -> None:
    fifo(place, "never")
    parts = {
        "go": [
            [spawn(f"s{n}", f"task {n}") for n in (1, 2, 3)],
            [wait("w1", "agent-1", "agent-2", "agent-3", timeout_ms=60000)],
            [say("still here")],
        ],
        "task 1": [[run("c1", "cat never")]],
        "task 2": [[run("c2", "touch made")]],
        "task 3": [[run("c3", "touch made")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, approval="untrusted", can_ask=True) as watched:
            turn = asyncio.create_task(watched.say("go"))
            await result(watched, lambda event: isinstance(event, events.QuestionRaised))
            await result(watched, lambda event: isinstance(event, events.AgentCallStarted) and event.tool == "wait")
            watched.session.interrupt()
            stopped = await turn
            for name in ("agent-1", "agent-2", "agent-3"):
                await told_of(watched, name, "interrupted")
            assert not any(state.is_waiting for state in watched.session.agents.states())
            await watched.say("and now?")
    assert isinstance(stopped, events.TurnInterrupted)
    assert not (place.repo / "made").exists()
    assert model.of("go")[-1].output_of("w1") == "aborted"
    question = [event.question.id for event in watched.of(events.QuestionRaised)]
    assert question == [event.question_id for event in watched.of(events.QuestionClosed)]


async def test_agents_still_at_work_when_the_session_ends_are_stopped_and_named(place: Place) -> None:
    fifo(place, "never")
    started = fifo(place, "started")
    parts = {
        "go": [[spawn("s1", "look at a")], [say("started")]],
        "look at a": [[run("c1", "echo $$ >started; cat never")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            pid = int(await asyncio.to_thread(started.read_text))
            await watched.session.submit(OverrideTurnContext(plan=True))
    assert not is_running(pid)
    assert watched.warnings == [
        "plan mode is not for agents that are at work already: agent-1",
        "1 agent was still at work and stopped: agent-1",
    ]


async def test_what_one_session_hides_an_agent_hides_too(place: Place) -> None:
    secret = "hush-hush-secret1"
    needs = "dependencies:\n  tools:\n    - {type: env_var, value: DEPLOY_TOKEN, description: deploys}\n"
    add_skill(repo_root(place), "deploy", skill_text("deploy", more=needs))
    parts = {
        "$deploy": [[spawn("s1", "deploy it")], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "deploy it": [[run("c1", f"echo got {secret}")], [say(f"I saw {secret}")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:

            def listen(event: events.Event) -> None:
                if isinstance(event, events.QuestionRaised):
                    reply = watched.session.submit(AnswerQuestion(event.question.id, secret))
                    watched.tasks.append(asyncio.ensure_future(reply))

            watched.session.subscribe(listen)
            await watched.say("$deploy")
    # What the model itself said stands in its own history, and nowhere else.
    assert secret not in model.of("deploy it")[1].output_of("c1")
    assert secret not in model.of("$deploy")[2].output_of("w1")
    assert all(secret not in path.read_text() for path in place.rollouts())

"""What an agent is: its role, its place, the limits, and that it may do no more than the session that started it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from tests.support.agents import cast, run, spawn, standing, tool_names, wait
from tests.support.bodies import injected, user
from tests.support.fake_responses import Request, call, say
from tests.support.home import MODEL, Place
from tests.support.script import Stream
from tests.support.session import watched_session
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, repo_root


def add_role(place: Place, name: str, text: str) -> None:
    """A role of the user's."""
    path = place.codex_home / "agents" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


async def test_a_role_that_is_not_to_ask_is_refused_what_needs_a_yes(place: Place) -> None:
    add_role(place, "quiet.md", "---\npermissionMode: dontAsk\n---\nWork.")
    more = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    parts = {
        "go": [[spawn("s1", "write", agent_type="quiet")], [wait("w1", "quiet-1", timeout_ms=60000)], [say("done")]],
        "write": [[run("c1", "touch made", **more)], [say("no")]],
    }
    with cast(parts) as model:
        async with watched_session(
            place, model, sandbox="workspace-write", approval="on-request", can_ask=True
        ) as watched:
            watched.session.subscribe(lambda event: watched.agree(event))
            await watched.say("go")
    assert "escalated permissions are not available" in model.of("write")[1].output_of("c1")
    assert watched.of(events.QuestionRaised) == []
    assert not (place.repo / "made").exists()


async def test_an_agent_without_a_fork_knows_its_place_its_skills_and_its_task(place: Place) -> None:
    path, quiet = (add_skill(repo_root(place), name) for name in ("lint", "quiet"))
    add_metadata(quiet, "policy: {allow_implicit_invocation: false}\n")
    add_role(place, "linter.md", "---\nname: linter\ndescription: lints\nskills: quiet\n---\n")
    place.write("AGENTS.md", "Prefer tabs.\n")
    parts = {
        "go": [
            [spawn("s1", "look at a", agent_type="linter", skills=["lint"])],
            [wait("w1", "linter-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look at a": [[say("fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("go")
    first, [child] = model.of("go")[0], model.of("look at a")
    # The same beginning as the other's, then its own.
    assert child.input == [*first.input[:-1], injected(quiet), injected(path), user("look at a")]
    assert child.body["prompt_cache_key"] == child.thread != first.thread
    assert [name for name in tool_names(first) if name not in tool_names(child)] == [
        "spawn_agent",
        "send_input",
        "wait_agent",
        "close_agent",
        "list_agents",
    ]


@pytest.mark.parametrize(
    ("parents", "role", "result"),
    [
        ("danger-full-access", "", "danger-full-access"),
        ("danger-full-access", "explorer", "read-only"),
        ("danger-full-access", "writer", "workspace-write"),
        ("workspace-write", "explorer", "read-only"),
        ("workspace-write", "wide", "workspace-write"),
        ("read-only", "writer", "read-only"),
        ("read-only", "wide", "read-only"),
    ],
)
async def test_an_agent_may_do_no_more_than_who_started_it(place: Place, parents: str, role: str, result: str) -> None:
    add_role(place, "wide.toml", 'sandbox_mode = "danger-full-access"\napproval_policy = "on-request"\n')
    add_role(place, "writer.toml", 'sandbox_mode = "workspace-write"\n')
    wider = {"sandbox_mode": "danger-full-access", "sandbox": "danger-full-access", "cwd": "/"}
    touch = run("c1", "touch made; echo $?", sandbox_permissions="require_escalated", justification="please")
    parts = {
        "go": [
            [spawn("s1", "touch it", agent_type=role, **wider)],
            [wait("w1", f"{role or 'agent'}-1", timeout_ms=60000)],
            [say("done")],
        ],
        "touch it": [[touch], [run("c2", "touch made")], [say("done")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, sandbox=parents) as watched:
            await watched.say("go")
    first, _, last = model.of("touch it")
    assert f"`sandbox_mode` is `{result}`" in "".join(first.texts("developer"))
    assert f"<cwd>{place.repo}</cwd>" in first.texts("user")[0]
    assert (place.repo / "made").exists() == (result != "read-only")
    if result == "read-only":
        assert "Read-only file system" in last.output_of("c2")


async def test_roles_come_from_the_users_directory_and_from_a_trusted_projects(place: Place) -> None:
    add_role(place, "scout.toml", 'description = "looks around"\ndeveloper_instructions = "Look everywhere."\n')
    add_role(place, "other.md", "---\nname: poet\ndescription: writes verse\nmodel: claude-9\n---\nWrite in verse.\n")
    place.write(
        ".codex/agents/code-reviewer.md",
        "---\nname: code-reviewer\ndescription: Expert review. Use proactively.\ntools: Read, Grep, Glob\n"
        "model: sonnet\ncolor: blue\n---\n\nYou are a senior reviewer.\n",
    )
    place.write(".codex/agents/broken.md", "no frontmatter here\n")
    trust = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
    names = ["scout", "poet", "code-reviewer"]
    parts = {
        "go": [
            [spawn(f"s{n}", f"task {n}", agent_type=name) for n, name in enumerate(names, start=1)],
            [wait(f"w{n}", f"{name}-1", timeout_ms=60000) for n, name in enumerate(names, start=1)],
            [say("done")],
        ],
        **{f"task {n}": [[say("fine")]] for n in (1, 2, 3)},
    }
    with cast(parts) as model:
        async with watched_session(place, model, trust) as watched:
            await watched.say("go")
            assert [state[:2] for state in standing(watched)] == [(f"{name}-1", "completed") for name in names]
    [warned] = watched.warnings
    assert warned.endswith("broken.md` is left out: no frontmatter between two lines of `---`")
    [shown] = [tool for tool in model.of("go")[0].body["tools"] if tool.get("name") == "spawn_agent"]
    assert shown["parameters"]["properties"]["agent_type"]["description"].splitlines()[1:] == [
        "- `code-reviewer`: Expert review. Use proactively.",
        "- `explorer`: answers questions about the code, and changes nothing",
        "- `poet`: writes verse",
        "- `scout`: looks around",
        "- `worker`: carries out a well-described piece of work, such as a fix or a part of a feature",
    ]
    scout, poet, reviewer = (model.of(f"task {n}")[0] for n in (1, 2, 3))
    assert "Look everywhere." in scout.texts("developer")
    assert "Write in verse." in poet.texts("developer")
    assert "You are a senior reviewer." in "".join(reviewer.texts("developer"))
    assert "`sandbox_mode` is `read-only`" in "".join(reviewer.texts("developer"))
    assert [agent.body["model"] for agent in (scout, poet, reviewer)] == [MODEL] * 3
    assert tool_names(reviewer) == ["exec_command", "write_stdin", "view_image"]


async def test_a_project_that_is_not_trusted_brings_no_roles(place: Place) -> None:
    place.write(".codex/agents/reviewer.md", "---\nname: reviewer\ndescription: x\n---\nObey.\n")
    with cast({"go": [[spawn("s1", "look", agent_type="reviewer")], [say("done")]]}) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
    assert model.of("go")[1].output_of("s1").startswith("unknown agent_type `reviewer`: ")


async def test_an_agent_whose_role_is_gone_does_not_go_on_without_its_limits(place: Place) -> None:
    add_role(place, "reader.toml", 'sandbox_mode = "read-only"\n')
    parts = {
        "go": [
            [spawn("s1", "look", agent_type="reader")],
            [wait("w1", "reader-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look": [[say("fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            thread = watched.session.thread_id
    (place.codex_home / "agents" / "reader.toml").unlink()
    again = call("t1", "send_input", {"target": "reader-1", "message": "touch made"})
    with cast({"go on": [[again], [say("done")]]}) as model:
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("go on")
    reason = "the role `reader` of the agent `reader-1` is there no more: start another one"
    assert model.requests[-1].output_of("t1") == reason


async def test_the_instructions_of_a_role_go_to_its_own_provider_only(place: Place) -> None:
    add_role(place, "local.toml", 'model_provider = "ollama"\n')
    add_role(place, "same.toml", 'model_provider = "fake"\n')
    parts = {
        "go": [
            [spawn("s1", "look", agent_type="local"), spawn("s2", "look", agent_type="same")],
            [wait("w1", "same-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look": [[say("fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model) as watched:
            await watched.say("go")
            assert [state[:2] for state in standing(watched)] == [("same-1", "completed")]
    assert model.of("go")[-1].output_of("s1") == (
        "the role `local` is for the provider `ollama`, and agents have that of their session, `fake`: use another"
        " `agent_type`"
    )


async def test_a_skill_that_a_role_names_and_nobody_has_costs_a_line(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    add_role(place, "linter.md", "---\nname: linter\nskills: nope, lint\n---\n")
    parts = {
        "go": [
            [spawn("s1", "look", agent_type="linter")],
            [wait("w1", "linter-1", timeout_ms=60000)],
            [say("done")],
        ],
        "look": [[say("fine")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("go")
    assert model.of("look")[0].input[-2:] == [injected(lint), user("look")]
    assert watched.warnings == ["the agent role `linter`: there is no skill `nope`; there are `lint`"]


async def test_without_the_feature_no_tool_for_agents_is_shown(place: Place) -> None:
    with cast({"go": [[say("done")]]}) as model:
        async with watched_session(place, model, "[features]\nmulti_agent = false\n") as watched:
            await watched.say("go")
    assert "spawn_agent" not in tool_names(model.of("go")[0])


@pytest.mark.parametrize("answer", ["once", None])
async def test_the_user_is_asked_in_the_name_of_the_agent(place: Place, answer: str | None) -> None:
    parts = {
        "go": [[spawn("s1", "touch it")], [wait("w1", "agent-1", timeout_ms=60000)], [say("done")]],
        "touch it": [[run("c1", "touch made")], [say("done")]],
    }
    question: list[tuple[str, bool]] = []
    with cast(parts) as model:
        async with watched_session(place, model, approval="untrusted", can_ask=True) as watched:

            def listen(event: events.Event) -> None:
                if isinstance(event, events.QuestionRaised):
                    [state] = watched.session.agents.states()
                    question.append((event.question.agent, state.is_waiting))
                    reply = watched.session.submit(AnswerQuestion(event.question.id, answer))
                    watched.tasks.append(asyncio.ensure_future(reply))

            watched.session.subscribe(listen)
            await watched.say("go")
            assert [state.is_waiting for state in watched.session.agents.states()] == [False]
    assert question == [("agent-1", True)]
    assert (place.repo / "made").exists() == (answer == "once")


async def test_no_more_agents_work_at_a_time_than_the_limit_says(place: Place) -> None:
    refused = threading.Event()

    def slow(_: Request) -> Stream:
        refused.wait(30)
        return [say("fine")]

    def third(request: Request) -> Stream:
        refused.set()
        return [wait("w1", "agent-1", timeout_ms=60000)]

    parts = {
        "go": [
            [spawn("s1", "one"), spawn("s2", "two")],
            third,
            [spawn("s3", "two")],
            [wait("w2", "agent-2", timeout_ms=60000)],
            [say("done")],
        ],
        "one": [slow],
        "two": [[say("fine too")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, "agents.max_threads = 1\n") as watched:
            await watched.say("go")
            assert [state[0] for state in standing(watched)] == ["agent-1", "agent-2"]
    limit = "as many agents are at work as may be, 1 (`agents.max_threads`): wait for one of them"
    assert model.of("go")[-1].output_of("s2") == limit


async def test_agents_of_agents_go_as_deep_as_the_limit_says(place: Place) -> None:
    parts = {
        "go": [
            [spawn("s1", "one")],
            [wait("w1", "agent-1", timeout_ms=60000)],
            [
                wait("w2", "agent-1", "agent-2"),
                call("t1", "send_input", {"target": "agent-2", "message": "go on"}),
                call("x1", "close_agent", {"target": "agent-2"}),
            ],
            [say("done")],
        ],
        "one": [[spawn("s1", "two")], [wait("w1", "agent-2", timeout_ms=60000)], [say("two says so")]],
        "two": [[spawn("s1", "three")], [say("I did it myself")]],
    }
    with cast(parts) as model:
        async with watched_session(place, model, "agents.max_depth = 2\n") as watched:
            await watched.say("go")
            assert [(state.name, state.depth, state.message) for state in watched.session.agents.states()] == [
                ("agent-1", 1, "two says so"),
                ("agent-2", 2, "I did it myself"),
            ]
            [one, two] = watched.session.agents.states()
            assert two.parent == one.id
            assert [item.type for item in watched.session.agents.items_of(two.id)][-1] == "message"
            thread = watched.session.thread_id
    last = model.of("go")[-1]
    not_yours = "the agent `agent-2` is not yours: `agent-1` has started it, and alone talks to it"
    assert [last.output_of(one) for one in ("w2", "t1", "x1")] == [not_yours] * 3
    assert "spawn_agent" in tool_names(model.of("one")[0])
    assert "spawn_agent" not in tool_names(model.of("two")[0])
    assert model.of("two")[1].output_of("s1") == "unsupported call: spawn_agent"
    with cast({}) as model:
        async with watched_session(place, model, resume=thread) as watched:
            agents = watched.session.load_agents()
            assert [(state.id, state.depth) for state in agents.states()] == [(one.id, 1), (two.id, 2)]
            assert [item.type for item in agents.items_of(two.id)][-1] == "message"

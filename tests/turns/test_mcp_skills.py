"""Skills that need an MCP server: asked about, written down, and there in the same turn."""

from __future__ import annotations

import asyncio
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from codex_py.protocol.questions import ApprovalQuestion, McpInstallQuestion, McpServerWanted, Question
from tests.support.bodies import injected, said, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp.conformance_client import browse
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import odd_words, server, tool_names
from tests.support.mcp_turns import agree, answers, output_parts, texts, warnings
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED

ASKING: dict[str, Any] = {"can_ask": True, "approval": "on-request"}


def add_skill(place: Place, name: str, *needs: str) -> Path:
    directory = place.codex_home / "skills" / name
    (directory / "agents").mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: needs a server\n---\nUse it.\n")
    tools = "".join(f"    - {need}\n" for need in needs)
    (directory / "agents/openai.yaml").write_text(f"dependencies:\n  tools:\n{tools}")
    return directory


def odd_need(name: str) -> str:
    line = shlex.join(odd_words("good"))
    return f"{{type: mcp, value: {name}, transport: stdio, command: '{line}'}}"


async def test_a_missing_server_is_asked_about_installed_and_used_in_the_same_turn(place: Place) -> None:
    add_skill(place, "helper", odd_need("odd"))
    with FakeResponses([call("c", "mcp__odd__reads", {})], [say("done")], [say("more")]) as model:
        top = f"# what I like\n{NO_BUNDLED}"
        async with watched_session(place, model, top, **ASKING) as watched:
            seen = answers(watched, agree)
            await watched.say("$helper go")
            await watched.say("$helper again")
    # What the server says of its tools saves no question.
    question, approval = seen
    assert isinstance(approval, ApprovalQuestion)
    line = shlex.join(odd_words("good"))
    assert isinstance(question, McpInstallQuestion)
    assert question.servers == (McpServerWanted("odd", "stdio", line, ("helper",)),)
    first = tool_names(model.requests[0].body)
    assert first[-3:] == ["mcp__odd__destroys", "mcp__odd__plain", "mcp__odd__reads"]
    assert texts(output_parts(model.requests[1].body, "c"))[0].startswith("reads of ")
    config = (place.codex_home / "config.toml").read_text()
    assert "# what I like" in config
    command, *arguments = odd_words("good")
    assert tomllib.loads(config)["mcp_servers"] == {
        "odd": {"command": command, "args": arguments, "trust_annotations": False}
    }


async def test_what_is_sent_has_the_skill_before_the_message_and_the_new_tools_behind_the_others(place: Place) -> None:
    path = add_skill(place, "helper", odd_need("odd")) / "SKILL.md"
    async with scripted_session(place, [say("done")], top=NO_BUNDLED, can_ask=True) as (model, watched):
        seen = answers(watched, lambda _: "yes")
        await watched.say("$helper go")
    [request] = model.requests
    new = request.body["tools"][-6:]
    of_resources = ["list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"]
    of_the_server = ["mcp__odd__destroys", "mcp__odd__plain", "mcp__odd__reads"]
    assert [tool["name"] for tool in new] == [*of_resources, *of_the_server]
    assert len(seen) == 1
    assert request.body == whole_body(
        place,
        request,
        injected(path),
        user("$helper go"),
        skills=skill_list(f"- helper: needs a server (file: {path})"),
        can_ask=True,
        more_tools=new,
    )


async def test_the_next_session_finds_the_installed_server(place: Place) -> None:
    add_skill(place, "helper", odd_need("odd"))
    command, *arguments = odd_words("good")
    table = f'[mcp_servers.other_name]\ncommand = "{command}"\nargs = {arguments}\n'
    async with scripted_session(place, [say("done")], top=f"{table}{NO_BUNDLED}", **ASKING) as (_, watched):
        seen = answers(watched, lambda _: "yes")
        await watched.say("$helper go")
    assert seen == []


async def test_one_question_names_every_missing_server_and_is_asked_once(place: Place) -> None:
    add_skill(place, "one", odd_need("first"), "{type: mcp, value: second, url: 'https://x.invalid/mcp'}")
    async with scripted_session(place, [say("done")], [say("more")], top=NO_BUNDLED, **ASKING) as (_, watched):
        seen = answers(watched, lambda _: None)
        await watched.say("$one go")
        await watched.say("$one again")
    [question] = seen
    assert isinstance(question, McpInstallQuestion)
    assert [(one.name, one.transport) for one in question.servers] == [
        ("first", "stdio"),
        ("second", "streamable_http"),
    ]
    assert question.servers[1].target == "https://x.invalid/mcp"
    assert "mcp_servers" not in tomllib.loads((place.codex_home / "config.toml").read_text())


async def test_never_is_remembered(place: Place) -> None:
    add_skill(place, "one", odd_need("first"))
    with FakeResponses([say("done")], [say("more")], excuse={"threads"}) as model:
        questions: list[Question] = []
        async with watched_session(place, model, NO_BUNDLED, **ASKING) as watched:
            questions = answers(watched, lambda _: "never")
            await watched.say("$one go")
        assert len(questions) == 1
        config = tomllib.loads((place.codex_home / "config.toml").read_text())
        assert config["skills"]["never_install_mcp"] == ["one"]
        top = f'[skills]\nnever_install_mcp = ["one"]\n{NO_BUNDLED}'
        async with watched_session(place, model, top, **ASKING) as watched:
            questions = answers(watched, lambda _: "yes")
            await watched.say("$one go")
    assert questions == []


async def test_a_name_that_is_taken_stays_what_it_is(place: Place) -> None:
    add_skill(place, "one", odd_need("taken"))
    table = '[mcp_servers.taken]\nurl = "http://127.0.0.1:9/mcp"\nenabled = false\n'
    async with scripted_session(place, [say("done")], top=f"{table}{NO_BUNDLED}", **ASKING) as (model, watched):
        answers(watched, lambda _: "yes")
        await watched.say("$one go")
    servers = tomllib.loads((place.codex_home / "config.toml").read_text())["mcp_servers"]
    assert servers["taken"] == {"url": "http://127.0.0.1:9/mcp", "enabled": False}
    assert set(servers) == {"taken", "taken-2"}
    assert "mcp__taken_2__reads" in tool_names(model.requests[0].body)


async def test_a_server_that_does_not_come_up_costs_a_warning_not_the_turn(place: Place) -> None:
    add_skill(place, "one", "{type: mcp, value: gone, transport: stdio, command: no-such-program}")
    async with scripted_session(place, [say("done")], top=NO_BUNDLED, **ASKING) as (_, watched):
        answers(watched, lambda _: "yes")
        ended = await watched.say("$one go")
    assert isinstance(ended, events.TurnCompleted)
    assert warnings(watched) == [
        "the MCP server `gone` is not available: cannot start `no-such-program`: no such file or directory"
    ]


async def test_where_nobody_answers_it_is_one_warning(place: Place) -> None:
    path = add_skill(place, "one", odd_need("first"), "{type: mcp, value: web, url: 'https://w.invalid'}") / "SKILL.md"
    async with scripted_session(place, [say("done")], [say("more")], top=NO_BUNDLED) as (model, watched):
        await watched.say("$one go")
        await watched.say("$one again")
    last = model.requests[-1]
    turns = [injected(path), user("$one go"), said("done"), injected(path), user("$one again")]
    listed = skill_list(f"- one: needs a server (file: {path})")
    assert last.body == whole_body(place, last, *turns, skills=listed)
    [warning] = warnings(watched)
    line = shlex.join(odd_words("good"))
    assert warning == (
        f"the MCP servers `first` ({line}), `web` (https://w.invalid) are not configured;"
        " skill `one` may not work without them; `--install-dependencies` adds them"
    )


async def test_a_server_that_wants_a_login_is_signed_in_at_and_used_in_the_same_turn(place: Place) -> None:
    with (
        McpOverHttp(login=True) as remote,
        FakeResponses([call("c", "mcp__notes__whoami", {})], [say("done")]) as model,
    ):
        add_skill(place, "helper", f"{{type: MCP, value: notes, url: '{remote.url}'}}")
        async with watched_session(place, model, NO_BUNDLED, **ASKING) as watched:

            def sign_in(event: events.Event) -> None:
                if isinstance(event, events.Warned) and "/authorize?" in event.message:
                    watched.tasks.append(asyncio.create_task(browse(event.message.split()[-1])))

            watched.session.subscribe(sign_in)
            answers(watched, agree)
            await watched.say("$helper go")
            await asyncio.gather(*watched.tasks)
    # Taken out of what the model reads, as every secret is.
    assert texts(output_parts(model.requests[1].body, "c"))[0].startswith("Bearer [")
    address, joined = warnings(watched)
    assert address.startswith(f"sign in at the MCP server `notes`: {remote.base}/issuer/authorize?")
    assert joined == "the MCP server `notes` is connected for the first time: 4 tools join from this turn on"


async def test_a_server_added_in_a_session_keeps_its_place_among_the_tools_on_resume(place: Place) -> None:
    add_skill(place, "one", odd_need("alpha"))
    command, *arguments = odd_words("good")
    alpha = server("alpha", command=command, args=arguments, trust_annotations=False)
    # Another command: a server that a skill needs is known by what it runs.
    zeta = server("zeta", command=command, args=[*arguments, "name=zeta"], trust_annotations=False)
    answered = [[say(f"answer {number}")] for number in range(6)]
    with FakeResponses(*answered) as model:
        async with watched_session(place, model, f"{NO_BUNDLED}{zeta}", **ASKING) as watched:
            await watched.say("hello")
            answers(watched, agree)
            await watched.say("$one go")
        for thread in (watched.session.thread_id,) * 2:
            async with watched_session(place, model, f"{NO_BUNDLED}{alpha}{zeta}", resume=thread, **ASKING) as watched:
                await watched.say("again")
                await watched.session.submit(Compact())
    before, *resumed = [tool_names(request.body) for request in model.requests[1:]]
    assert before.index("mcp__zeta__reads") < before.index("mcp__alpha__reads")
    assert resumed == [before] * len(resumed)


async def test_the_skill_search_is_offered_on_resume_if_it_was_before_and_only_then(place: Place) -> None:
    skill = add_skill(place, "one")
    with FakeResponses(*([say(f"answer {number}")] for number in range(4)), excuse={"threads"}) as model:
        threads: list[str] = []
        for has_references in (False, True):
            if has_references:
                (skill / "references").mkdir()
            async with watched_session(place, model, NO_BUNDLED) as watched:
                await watched.say("hello")
                threads.append(watched.session.thread_id)
        for thread in threads:
            async with watched_session(place, model, NO_BUNDLED, resume=thread) as watched:
                await watched.say("again")
            if (skill / "references").exists():
                (skill / "references").rmdir()
    offered = ["skill_search" in tool_names(request.body) for request in model.requests]
    assert offered == [False, True, False, True]


@pytest.mark.parametrize("setting", ["ask", "always"])
async def test_a_feature_switches_the_installation_of_servers_off(place: Place, setting: str) -> None:
    add_skill(place, "one", odd_need("first"))
    top = (
        f"[skills]\ninstall_mcp_dependencies = '{setting}'\n[features]\nskill_mcp_dependency_install = false\n"
        f"{NO_BUNDLED}"
    )
    async with scripted_session(place, [say("done")], top=top, **ASKING) as (_, watched):
        seen = answers(watched, agree)
        await watched.say("$one go")
    assert seen == []
    assert "mcp_servers" not in (place.codex_home / "config.toml").read_text()
    [warning] = warnings(watched)
    assert "is not configured" in warning

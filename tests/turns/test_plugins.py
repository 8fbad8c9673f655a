"""Plugins that are switched on: their skills and their servers, in a session."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.questions import ApprovalQuestion, Question
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp_servers import learn, odd_words, server, tool_names
from tests.support.mcp_turns import answers, output_parts, texts, warnings
from tests.support.plugins import add_server, enabled, install, make_plugin, write
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED

ASKING: dict[str, Any] = {"can_ask": True, "approval": "on-request"}


async def test_a_skill_of_a_plugin_is_listed_and_named_with_its_namespace_alone(place: Place, tmp_path: Path) -> None:
    root = install(place, make_plugin(tmp_path / "p"))
    async with scripted_session(place, [say("one")], [say("two")], top=NO_BUNDLED + enabled()) as (model, watched):
        await watched.say("use $greet")
        await watched.say("use $demo:greet: now, and [$demo](plugin://demo@local)")
    first, second = (json.dumps(request.body["input"]) for request in model.requests)
    assert "- demo:greet: greet people (file: " in first
    assert "Say hi." not in first
    assert "<skill>\\n<name>demo:greet</name>" in second
    assert [(use.name, use.path) for use in watched.of(events.SkillUsed)] == [
        ("demo:greet", root / "skills/greet/SKILL.md")
    ]


@pytest.mark.parametrize("manifest", [".codex-plugin", ".claude-plugin"])
async def test_a_server_of_a_plugin_is_called_like_any_other(place: Place, tmp_path: Path, manifest: str) -> None:
    directory = make_plugin(tmp_path / "p", manifest=manifest)
    add_server(directory)
    install(place, directory)
    place.configure(enabled())
    learn(place, "theirs")
    with FakeResponses([call("c", "mcp__theirs__reads", {"text": "x"})], [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + enabled()) as watched:
            await watched.say("go")
    assert tool_names(model.requests[0].body)[-1] == "mcp__theirs__reads"
    assert texts(output_parts(model.requests[1].body, "c"))[0].endswith("said x")
    assert warnings(watched) == []


async def test_a_plugin_that_is_not_switched_on_brings_nothing(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory)
    install(place, directory)
    async with scripted_session(place, [say("one")], top=NO_BUNDLED) as (model, watched):
        await watched.say("use $demo:greet")
    assert "greet people" not in json.dumps(model.requests[0].body["input"])
    assert not any("mcp" in name for name in tool_names(model.requests[0].body))


async def test_a_plugin_s_server_knows_its_directory_and_gets_the_variables_it_passes_on(
    place: Place, tmp_path: Path
) -> None:
    directory = make_plugin(tmp_path / "p")
    script = "import os, sys; print(sys.argv[1], os.getcwd(), dict(os.environ), file=sys.stderr); sys.exit(1)"
    write(directory / "run.py", script)
    entry = {
        "command": odd_words("good")[0],
        "args": ["run.py", "${CLAUDE_PLUGIN_ROOT}/x"],
        "cwd": ".",
        "env": {"PLUGIN_TOKEN": "${PLUGIN_TOKEN}", "FIXED": "${PLUGIN_ROOT}/y"},
    }
    write(directory / ".mcp.json", json.dumps({"theirs": entry}))
    root = install(place, directory)
    place = place.with_env(PLUGIN_TOKEN="a-token", OTHER_SECRET="not-this")
    with FakeResponses([call("c", "mcp__theirs__x", {})], [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + enabled()) as watched:
            await watched.say("go")
            [result] = [one for one in warnings(watched) if "is not available" in one]
    assert f"{root}/x {root}" in result
    assert "not-this" not in result


async def test_a_yes_for_good_is_kept_beside_the_plugin_and_holds_in_the_next_session(
    place: Place, tmp_path: Path
) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory, default_tools_approval_mode="approve")
    install(place, directory)
    assert await questions_about_a_call(place, enabled()) == [ApprovalQuestion]
    plugin = tomllib.loads((place.codex_home / "config.toml").read_text())["plugins"]["demo@local"]
    hashed = plugin["mcp_servers"]["theirs"]["tools"]["destroys"]["approved_hash"]
    agreed = f'{enabled()}[plugins."demo@local".mcp_servers.theirs.tools.destroys]\napproved_hash = "{hashed}"\n'
    assert plugin == tomllib.loads(agreed)["plugins"]["demo@local"]
    assert await questions_about_a_call(place, agreed) == []


@pytest.mark.parametrize(("trusted", "question"), [("", [ApprovalQuestion]), ("trust_annotations = true\n", [])])
async def test_what_a_plugin_s_server_says_of_its_tools_saves_questions_only_when_the_user_says_so(
    place: Place, tmp_path: Path, trusted: str, question: list[type[Question]]
) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory, trust_annotations=True)
    install(place, directory)
    table = f'{enabled()}[plugins."demo@local".mcp_servers.theirs]\n{trusted}'
    assert await questions_about_a_call(place, table, tool="reads") == question


async def questions_about_a_call(place: Place, table: str, *, tool: str = "destroys") -> list[type[Question]]:
    with FakeResponses([call("c", f"mcp__theirs__{tool}", {})], [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + table, sandbox="workspace-write", **ASKING) as watched:
            seen = answers(watched, lambda _: "always")
            await watched.say("go")
    return [type(one) for one in seen]


async def test_two_servers_of_one_name_the_user_s_counts_and_it_is_reported(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory)
    install(place, directory)
    command, *arguments = odd_words("good", "tools=mine")
    table = server("theirs", command=command, args=arguments)
    with FakeResponses([call("c", "mcp__theirs__mine", {})], [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + enabled() + table) as watched:
            await watched.say("go")
    assert texts(output_parts(model.requests[1].body, "c"))[0].startswith("mine of ")
    assert warnings(watched)[0] == (
        "the MCP server `theirs` of plugin `demo@local` is left out: the user's configuration has that name"
    )


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ('{"x": {"command": "../../evil"}}', "its command leads out of the plugin"),
        ('{"x": {"command": "a", "cwd": "/etc"}}', "its `cwd` leads out of the plugin"),
        ('{"x": {"command": "a", "url": "https://a.invalid"}}', "it has neither one `command` nor one `url`"),
        ('{"x": {"url": "file:///etc/passwd"}}', "it has neither one `command` nor one `url`"),
        ('{"x": {"url": "https://a.invalid", "type": "sse"}}', "its transport is none of `stdio`, `http`"),
        ('{"x y": {"command": "a"}}', "the name is invalid"),
        ("[1, 2", "no JSON object of at most 64 KiB inside the plugin"),
        (" " * 70_000 + "{}", "no JSON object of at most 64 KiB inside the plugin"),
        ('{"x":' * 20_000, "no JSON object of at most 64 KiB inside the plugin"),
    ],
)
async def test_a_server_that_cannot_be_used_is_one_line(
    place: Place, tmp_path: Path, written: str, reason: str
) -> None:
    directory = make_plugin(tmp_path / "p")
    write(directory / ".mcp.json", written)
    install(place, directory)
    async with scripted_session(place, [say("one")], top=NO_BUNDLED + enabled()) as (model, watched):
        await watched.say("go")
    [line] = warnings(watched)
    assert line.endswith(f"left out: {reason}")
    assert not any("mcp" in name for name in tool_names(model.requests[0].body))


@pytest.mark.parametrize("chosen", ["../../..", "/etc", "out", "", 7, {"a": 1}])
async def test_the_skills_of_a_plugin_stay_inside_it(place: Place, tmp_path: Path, chosen: object) -> None:
    write(tmp_path / "secret/SKILL.md", "---\nname: secret\ndescription: not of the plugin\n---\n")
    directory = make_plugin(tmp_path / "p", skills=chosen, mcpServers="../../../evil.json")
    (directory / "out").symlink_to(tmp_path / "secret")
    install(place, directory)
    async with scripted_session(place, [say("one")], top=NO_BUNDLED + enabled()) as (model, watched):
        await watched.say("go")
    assert "not of the plugin" not in json.dumps(model.requests[0].body["input"])
    assert len(warnings(watched)) == 1

"""MCP servers that a project's own files name: nothing of them runs before a yes to exactly what would run."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.load import ConfigRequest, load_config
from codex_py.mcp.table import known_servers, trust_server
from codex_py.protocol import events
from codex_py.protocol.questions import ApprovalQuestion, ProjectServer, ProjectServersQuestion
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.mcp_servers import learn, odd_words, requested_methods, server, tool_names
from tests.support.mcp_turns import agree, answers, output_parts, texts, warnings
from tests.support.plugins import enabled, install, make_plugin, write
from tests.support.process import run
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED

ASKING: dict[str, Any] = {"can_ask": True, "approval": "on-request"}


def real(place: Place) -> Path:
    return Path(os.path.realpath(place.repo))


def trusting(place: Place) -> str:
    return f'[projects.{json.dumps(str(real(place)))}]\ntrust_level = "trusted"\n'


def name_server(place: Place, log: Path, **more: Any) -> None:
    """Have the project's configuration name a server that notes what it is asked."""
    command, *arguments = odd_words("good", f"log={log}")
    place.write(".codex/config.toml", server("theirs", command=command, args=arguments, **more))


def standing(place: Place, *, agree: bool = False) -> str:
    """What the user has said to the only server; it is agreed to then, if wanted."""
    loaded = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env))
    [one] = known_servers(loaded, place.codex_home, place.repo).servers
    if agree:
        trust_server(place.codex_home, real(place), one.name, one.pin)
    return one.standing


def said(place: Place) -> dict[str, str]:
    """What is written down about the project's servers."""
    projects = tomllib.loads((place.codex_home / "config.toml").read_text())["projects"]
    return projects[str(real(place))].get("trusted_mcp_servers", {})


async def test_a_yes_starts_the_server_in_the_same_turn_and_is_remembered(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log"
    name_server(place, log, env={"LD_PRELOAD": "x.so", "API_KEY": "k"}, env_vars=["HOME_TOKEN"])
    top = f"# what I like\n{NO_BUNDLED}{trusting(place)}"
    place = place.with_env(HOME_TOKEN="t")
    with FakeResponses([call("c", "mcp__theirs__reads", {})], [say("done")], [say("more")]) as model:
        async with watched_session(place, model, top, **ASKING) as watched:
            seen = answers(watched, agree)
            await watched.say("go")
            await watched.say("again")
        kept = (place.codex_home / "config.toml").read_text()
    # What the server says of its tools saves no question.
    question, approval = seen
    assert isinstance(approval, ApprovalQuestion)
    command, *arguments = odd_words("good", f"log={log}")
    assert isinstance(question, ProjectServersQuestion)
    assert question.project == real(place)
    assert question.servers == (
        ProjectServer(
            "theirs",
            "stdio",
            " ".join([command, *arguments]),
            passes=("HOME_TOKEN",),
            sets=("LD_PRELOAD=x.so", "API_KEY=*****"),
        ),
    )
    assert "mcp__theirs__reads" in tool_names(model.requests[0].body)
    assert texts(output_parts(model.requests[1].body, "c"))[0].startswith("reads of ")
    assert "# what I like" in kept
    assert list(said(place)) == ["theirs"]


async def test_what_was_agreed_to_is_started_unasked_and_what_changed_is_asked_about_again(
    place: Place, tmp_path: Path
) -> None:
    name_server(place, tmp_path / "one")
    top = NO_BUNDLED + trusting(place)
    place.configure(top)
    assert standing(place, agree=True) == "unknown"
    pins = f'trusted_mcp_servers = {{ theirs = "{said(place)["theirs"]}" }}\n'
    async with scripted_session(place, [say("one")], top=top + pins, **ASKING) as (_, watched):
        seen = answers(watched, lambda _: "yes")
        await watched.say("go")
    assert seen == []
    name_server(place, tmp_path / "two")
    async with scripted_session(place, [say("two")], top=top + pins, **ASKING) as (_, watched):
        seen = answers(watched, lambda _: None)
        await watched.say("go")
    [question] = seen
    assert isinstance(question, ProjectServersQuestion)
    assert question.servers[0].changed
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("reply", ["yes", "network", "outside"])
async def test_the_answer_says_where_the_server_runs(place: Place, tmp_path: Path, reply: str) -> None:
    name_server(place, tmp_path / "log")
    with FakeResponses([say("one")]) as model:
        top = NO_BUNDLED + trusting(place)
        async with watched_session(place, model, top, sandbox="read-only", **ASKING) as watched:
            answers(watched, lambda _: reply)
            await watched.say("go")
    words, _, _ = said(place)["theirs"].rpartition(":")
    assert words == ("" if reply == "yes" else reply)
    # In the sandbox it cannot write what it is asked.
    assert (tmp_path / "log").exists() == (reply == "outside")


@pytest.mark.parametrize(("reply", "again"), [(None, 1), ("never", 0)])
async def test_a_no_starts_nothing_and_only_never_is_remembered(
    place: Place, tmp_path: Path, reply: str | None, again: int
) -> None:
    log = tmp_path / "log"
    name_server(place, log)
    top = NO_BUNDLED + trusting(place)
    async with scripted_session(place, [say("one")], [say("two")], top=top, **ASKING) as (model, watched):
        seen = answers(watched, lambda _: reply)
        await watched.say("go")
        await watched.say("again")
    assert len(seen) == 1
    kept = "".join(f'trusted_mcp_servers = {{ {name} = "{pin}" }}\n' for name, pin in said(place).items())
    async with scripted_session(place, [say("three")], top=top + kept, **ASKING) as (model, watched):
        later = answers(watched, lambda _: None)
        await watched.say("once more")
    assert len(later) == again
    assert not log.exists()
    assert not any("mcp" in name for name in tool_names(model.requests[0].body))


async def test_where_nobody_is_asked_it_is_one_warning_and_nothing_is_started(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log"
    name_server(place, log)
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED + trusting(place)) as watched:
            await watched.say("go")
            await watched.say("again")
    assert warnings(watched) == [
        "the project's MCP server `theirs` is not started: you have not agreed to what would run"
        " (`codex-py mcp trust NAME` shows it, and asks)"
    ]
    assert not log.exists()
    assert not any("mcp" in name for name in tool_names(model.requests[0].body))


async def test_a_project_cannot_loosen_what_is_asked(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "logs/log"
    log.parent.mkdir()
    name_server(place, log, sampling=True, default_tools_approval_mode="approve")
    roots = f"[sandbox_workspace_write]\nwritable_roots = {json.dumps([str(log.parent)])}\n"
    place.configure(NO_BUNDLED + roots + trusting(place))
    standing(place, agree=True)
    learn(place, "theirs")
    with FakeResponses([call("c", "mcp__theirs__destroys", {})], [say("done")]) as model:
        top = (place.codex_home / "config.toml").read_text()
        async with watched_session(place, model, top, sandbox="workspace-write") as watched:
            await watched.say("go")
    assert str(output_parts(model.requests[1].body, "c")).startswith("call refused: ")
    assert "tools/call" not in requested_methods(log)
    assert "sampling" not in log.read_text()


def test_a_project_s_server_is_listed_and_trusted_from_the_command_line(place: Place, tmp_path: Path) -> None:
    log = tmp_path / "log"
    name_server(place, log)
    place.configure(f"# mine\n{NO_BUNDLED}{trusting(place)}")

    listed = json.loads(run(place, "mcp", "list", "--json").out)
    assert [(one["name"], one["origin"], one["disabled_reason"]) for one in listed] == [
        ("theirs", "project", "not trusted")
    ]
    refused = run(place, "mcp", "test", "theirs")
    assert (refused.status, refused.err.count("\n")) == (1, 1)
    nobody = run(place, "mcp", "trust", "theirs")
    assert (nobody.status, nobody.err.splitlines()[-1]) == (
        2,
        "error: trusting `theirs` needs approval, and nobody can be asked; pass --yes",
    )
    assert not log.exists()

    trusted = run(place, "mcp", "trust", "theirs", "--yes")
    assert trusted.status == 0
    assert " ".join(odd_words("good", f"log={log}")) in trusted.err
    assert (place.codex_home / "config.toml").read_text().startswith("# mine\n")
    assert standing(place) == "trusted"
    learn(place, "theirs")
    assert run(place, "mcp", "remove", "theirs").status == 2
    assert run(place, "mcp", "trust", "theirs", "--never").status == 0
    assert standing(place) == "refused"


def test_what_an_untrusted_project_names_cannot_be_trusted_one_by_one(place: Place, tmp_path: Path) -> None:
    name_server(place, tmp_path / "log")
    ended = run(place, "mcp", "trust", "theirs", "--yes")
    assert ended.status == 2
    hint = "what a project names is read only when you trust the project (`codex-py --trust`)"
    assert f"the project names no MCP server `theirs`; {hint}" in ended.err


def test_a_user_s_server_counts_before_the_project_s(place: Place, tmp_path: Path) -> None:
    name_server(place, tmp_path / "log")
    place.configure(trusting(place) + server("theirs", command="mine"))
    [one] = json.loads(run(place, "mcp", "list", "--json").out)
    assert (one["origin"], one["transport"]["command"]) == ("user", "mine")
    assert run(place, "mcp", "trust", "theirs", "--yes").status == 2


@pytest.mark.parametrize("command", [["./serve.py"], ["python3", "tools/serve.py", "--stdio"]])
def test_a_changed_file_of_the_project_that_would_run_needs_a_new_yes(place: Place, command: list[str]) -> None:
    place.configure(trusting(place))
    place.write(".codex/config.toml", server("theirs", command=command[0], args=command[1:]))
    for name in ("serve.py", "tools/serve.py"):
        place.write(name, "print('what was read')\n")
    assert [standing(place, agree=True), standing(place)] == ["unknown", "trusted"]
    place.write("other.py", "new\n")
    assert standing(place) == "trusted"
    place.write("tools/serve.py" if len(command) > 1 else "serve.py", "print('something else')\n")
    assert standing(place) == "changed"


async def test_a_server_of_a_plugin_that_has_changed_is_not_started_again_after_it_has_died(
    place: Place, tmp_path: Path
) -> None:
    source = (Path(__file__).parents[1] / "support/mcp/odd_server.py").read_text()
    log = tmp_path / "log"
    directory = make_plugin(tmp_path / "p")
    write(directory / "serve.py", source)
    entry = {"command": sys.executable, "args": ["${PLUGIN_ROOT}/serve.py", "die_in_call", f"log={log}"]}
    write(directory / ".mcp.json", json.dumps({"mcpServers": {"theirs": entry}}))
    root = install(place, directory)
    tables = f'{enabled()}[plugins."demo@local".mcp_servers.theirs]\ndefault_tools_approval_mode = "approve"\n'
    calls = [[call(f"c{number}", "mcp__theirs__reads", {})] for number in range(2)]
    async with scripted_session(place, *calls, [say("done")], top=NO_BUNDLED + tables, **ASKING) as (model, watched):
        watched.on(events.McpCallFinished, lambda: write(root / "serve.py", f"{source}\n# and something else\n"))
        await watched.say("go")
    assert "`serve.py` has changed since it was installed" in model.requests[2].output_of("c1")
    assert requested_methods(log).count("initialize") == 1


async def test_a_server_whose_file_was_changed_is_not_started_again_after_it_has_died(
    place: Place, tmp_path: Path
) -> None:
    source = (Path(__file__).parents[1] / "support/mcp/odd_server.py").read_text()
    script = place.write("serve.py", source)
    log = tmp_path / "log"
    words = [str(script), "die_in_call", f"log={log}"]
    place.write(".codex/config.toml", server("theirs", command=sys.executable, args=words))
    calls = [[call(f"c{number}", "mcp__theirs__reads", {})] for number in range(2)]
    with FakeResponses(*calls, [say("done")]) as model:
        async with watched_session(place, model, NO_BUNDLED + trusting(place), **ASKING) as watched:
            answers(watched, agree)
            watched.on(events.McpCallFinished, lambda: script.write_text(f"{source}\n# and something else\n"))
            await watched.say("go")
    assert "changed since you agreed to it" in model.requests[2].output_of("c1")
    assert requested_methods(log).count("initialize") == 1

"""MCP servers in the real program: their prompts are commands, and a project's are asked about."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from tests.repl.conftest import ready_model
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.mcp_servers import ODD_SERVER, everything, learn, odd_words, server, tool_names
from tests.support.terminal import Terminal


def test_a_prompt_of_a_server_is_a_command_that_is_sent_as_its_text(place: Place) -> None:
    place.configure(everything())
    learn(place, "everything")
    with (
        ready_model(place, [say("Sunny.")], tables=everything()) as model,
        Terminal(place, width=100, height=40) as terminal,
    ):
        terminal.wait_for_prompt()
        terminal.type("/mcp__ev")
        terminal.wait_for("/mcp__everything__args-prompt")
        terminal.type("erything__args-prompt Paris\r")
        terminal.wait_for("Sunny.")
    assert "What's weather in Paris?" in str(model.requests[0].body["input"][-1])


def test_a_project_s_server_is_asked_about_before_the_first_request(place: Place, tmp_path: Path) -> None:
    command, *arguments = odd_words("good", f"log={tmp_path / 'log'}")
    place.write(".codex/config.toml", server("theirs", command=command, args=arguments))
    with ready_model(place, [say("Done.")]) as model, Terminal(place, width=100, height=40) as terminal:
        terminal.wait_for_prompt()
        terminal.type("go\r")
        terminal.wait_for("Start the project's MCP server theirs?").wait_for("odd_server.py")
        assert not (tmp_path / "log").exists()
        terminal.type("y")
        terminal.wait_for("Done.")
    assert "mcp__theirs__reads" in tool_names(model.requests[0].body)
    projects = tomllib.loads((place.codex_home / "config.toml").read_text())["projects"]
    assert list(projects[str(place.repo)]["trusted_mcp_servers"]) == ["theirs"]


def test_a_broken_server_is_reported_before_anything_is_sent(place: Place, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(ODD_SERVER.read_text())
    table = server("mine", command=sys.executable, args=[str(script), "good"])
    place.configure(table)
    learn(place, "mine")
    script.unlink()
    with ready_model(place, tables=table) as model, Terminal(place, width=100, height=40) as terminal:
        terminal.wait_for_prompt().type("a first thought")
        terminal.wait_for("the MCP server `mine`").wait_for("› a first thought")
    assert not model.requests

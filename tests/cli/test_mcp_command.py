"""`codex-py mcp` and `skills show` as scripts and people use them, and `exec` with a server."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import learn, odd, odd_words, server, tool_names
from tests.support.process import run
from tests.support.wire import Proxy

CONFIG = (
    '# mine\nmodel = "m" # the good one\n\n[mcp_servers.docs] # ours\nurl = "https://u:pw@docs.invalid/mcp?key=abc"\n'
)


def test_adding_and_removing_keep_what_else_is_in_the_file(place: Place) -> None:
    place.configure(CONFIG)
    added = run(place, "mcp", "add", "local", "--env", "API_KEY=hunter2", "--", "node", "server.js", "--flag")
    assert (added.status, added.out) == (0, "")
    assert "added the MCP server `local`" in added.err
    text = (place.codex_home / "config.toml").read_text()
    assert text.startswith(CONFIG)
    assert tomllib.loads(text)["mcp_servers"]["local"] == {
        "command": "node",
        "args": ["server.js", "--flag"],
        "env": {"API_KEY": "hunter2"},
    }
    assert (
        run(place, "mcp", "add", "local", "--url", "https://x.invalid/mcp", "--bearer-token-env-var", "TOK").status == 0
    )
    servers = tomllib.loads((place.codex_home / "config.toml").read_text())["mcp_servers"]
    assert servers["local"] == {"url": "https://x.invalid/mcp", "bearer_token_env_var": "TOK"}
    assert run(place, "mcp", "remove", "local").status == 0
    assert (place.codex_home / "config.toml").read_text().rstrip() == CONFIG.rstrip()
    again = run(place, "mcp", "remove", "local")
    file = place.codex_home / "config.toml"
    assert (again.status, again.err) == (2, f"error: no MCP server `local` in `{file}`; there are `docs`\n")


def test_no_value_of_a_secret_is_printed(place: Place) -> None:
    table = server("a", command="x", args=["--api-key", "hunter2", "--token=hunter2"], env={"K": "hunter2"})
    place.configure(CONFIG + table + server("b", url="https://b.invalid", http_headers={"X-Key": "hunter2"}))
    for arguments in (
        ["list"],
        ["list", "--json"],
        ["get", "a"],
        ["get", "a", "--json"],
        ["get", "b"],
        ["get", "docs"],
    ):
        printed = run(place, "mcp", *arguments)
        assert printed.status == 0
        assert "hunter2" not in printed.out + printed.err
        assert "pw@" not in printed.out
        assert "abc" not in printed.out
    found = {one["name"]: one for one in json.loads(run(place, "mcp", "list", "--json").out)}
    assert found["a"]["transport"] == {
        "type": "stdio",
        "command": "x",
        "args": ["--api-key", "*****", "--token=*****"],
        "env": {"K": "*****"},
        "env_vars": [],
        "cwd": None,
    }
    assert (found["b"]["auth_status"], found["a"]["auth_status"]) == ("not_logged_in", "unsupported")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["get", "nope"], 2, "no MCP server `nope` is configured; there are `docs`"),
        (["test", "nope"], 2, "no MCP server `nope` is configured; there are `docs`"),
        (["add", "bad name", "--", "x"], 2, "not a server name: `bad name`"),
        (["add", "x"], 2, "a server has either an address or a command"),
        (["add", "x", "--url", "ftp://x"], 2, "not a URL: `ftp://x`"),
        (["add", "x", "--url", "https://x y"], 2, "not a URL: `https://x y`"),
        (["add", "x", "--env", "A", "--", "x"], 2, "`--env` takes a name and a value"),
        (["add", "x", "--url", "https://x", "--env", "A=1"], 2, "`--env` goes with a command"),
        (["add", "x", "--bearer-token-env-var", "T", "--", "x"], 2, "`--bearer-token-env-var` with `--url`"),
    ],
)
def test_a_wrong_command_line_is_one_line(place: Place, arguments: list[str], status: int, message: str) -> None:
    place.configure(CONFIG)
    ended = run(place, "mcp", *arguments)
    assert ended.status == status
    assert message in ended.err
    assert (place.codex_home / "config.toml").read_text().rstrip() == CONFIG.rstrip()


def test_a_server_that_closes_its_input_before_it_ends_has_its_status_reported(place: Place) -> None:
    script = place.write(
        "server.py",
        "import json, os, time\n"
        "asked = json.loads(os.read(0, 65536))\n"
        "result = {'protocolVersion': asked['params']['protocolVersion'], 'capabilities': {'tools': {}},\n"
        "          'serverInfo': {'name': 'x', 'version': '1'}}\n"
        "os.close(0)\n"
        "os.write(1, json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}).encode() + b'\\n')\n"
        "time.sleep(0.3)\n"
        "os._exit(3)\n",
    )
    place.configure(f'[mcp_servers.bad]\ncommand = "{sys.executable}"\nargs = ["{script}"]\n')
    ended = run(place, "mcp", "test", "bad")
    assert ended.status == 1
    assert "it has ended with status 3" in ended.err


def test_a_server_is_tried_out(place: Place) -> None:
    place.configure(odd("good", "good") + odd("bad", "crash"))
    good = run(place, "mcp", "test", "good", "--json")
    report = json.loads(good.out)
    assert (good.status, report["ok"], [tool["name"] for tool in report["tools"]]) == (
        0,
        True,
        ["destroys", "plain", "reads"],
    )
    bad = run(place, "mcp", "test", "bad")
    assert bad.status == 1
    assert "it has ended with status 1" in bad.err
    assert "the database is on fire" in bad.err


def test_a_server_at_a_url_is_reached_through_the_proxy_and_one_on_this_machine_without(place: Place) -> None:
    with McpOverHttp() as local, Proxy(refuse=b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n") as proxy:
        place.configure(server("away", url="https://mcp.invalid/mcp") + server("local", url=local.url))
        proxied = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), f"http://127.0.0.1:{proxy.port}")
        away, near = (run(place.with_env(**proxied), "mcp", "test", name) for name in ("away", "local"))
    assert (away.status, near.status) == (1, 0), away.err + near.err
    assert [head.split(b"\r\n")[0] for head in proxy.heads] == [b"CONNECT mcp.invalid:443 HTTP/1.1"]


def test_exec_calls_a_known_server_and_prints_the_published_lines(place: Place) -> None:
    with fake_model(place, [call("c", "mcp__s__reads", {"text": "x"})], [say("done")], top=odd("s", "good")) as model:
        learn(place, "s")
        ended = run(place, "exec", "--json", "go")
    assert ended.status == 0
    assert "mcp__s__reads" in tool_names(model.requests[0].body)
    items = [event["item"] for event in ended.events if event.get("item", {}).get("type") == "mcp_tool_call"]
    started, finished = items
    assert started == {
        "id": started["id"],
        "type": "mcp_tool_call",
        "server": "s",
        "tool": "reads",
        "arguments": {"text": "x"},
        "result": None,
        "error": None,
        "status": "in_progress",
    }
    assert (finished["id"], finished["status"], finished["error"]) == (started["id"], "completed", None)
    assert finished["result"]["structured_content"] is None
    assert finished["result"]["content"][0]["text"].startswith("reads of ")


def test_exec_says_once_that_a_server_is_dead(place: Place) -> None:
    with fake_model(place, [say("done")], top=odd("s", "crash")):
        ended = run(place, "exec", "go")
    assert ended.status == 0
    assert ended.err.count("the MCP server `s` is not available") == 1


def test_a_required_server_that_is_dead_ends_exec_before_it_begins(place: Place) -> None:
    with fake_model(place, top=odd("s", "crash", required=True)):
        ended = run(place, "exec", "go")
    assert ended.status == 1
    assert "the MCP server `s` is not available" in ended.err


def test_what_skills_need_is_listed(place: Place) -> None:
    directory = place.codex_home / "skills" / "helper"
    (directory / "agents").mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\nname: helper\ndescription: needs things\n---\nUse them.\n")
    line = shlex.join(odd_words("good"))
    needs = [
        f"{{type: mcp, value: odd, transport: stdio, command: '{line}'}}",
        "{type: mcp, value: web, url: 'https://w'}",
    ]
    needs += ["{type: env_var, value: HOME}", "{type: env_var, value: NOT_THERE, description: a key}"]
    tools = "".join(f"    - {need}\n" for need in needs)
    (directory / "agents/openai.yaml").write_text(f"dependencies:\n  tools:\n{tools}")
    place.configure(odd("any", "good"))
    found = json.loads(run(place, "skills", "show", "--json").out)
    assert [(one["skill"], one["kind"], one["name"], one["missing"]) for one in found] == [
        ("helper", "mcp", "odd", False),
        ("helper", "mcp", "web", True),
        ("helper", "env_var", "HOME", False),
        ("helper", "env_var", "NOT_THERE", True),
    ]
    table = run(place, "skills", "show").out
    assert "NOT_THERE" in table
    assert "missing" in table


def test_exec_installs_what_a_skill_needs_when_it_is_allowed_to(place: Place, tmp_path: Path) -> None:
    directory = place.codex_home / "skills" / "helper"
    (directory / "agents").mkdir(parents=True)
    (directory / "SKILL.md").write_text("---\nname: helper\ndescription: needs a server\n---\nUse it.\n")
    line = shlex.join(odd_words("good"))
    (directory / "agents/openai.yaml").write_text(
        f"dependencies:\n  tools:\n    - {{type: mcp, value: odd, transport: stdio, command: '{line}'}}\n"
    )
    with fake_model(place, [call("c", "mcp__odd__reads", {})], [say("done")], top="# kept\n") as model:
        ended = run(place, "exec", "--install-dependencies", "$helper go")
    assert ended.status == 0
    assert "mcp__odd__reads" in tool_names(model.requests[0].body)
    assert "# kept" in (place.codex_home / "config.toml").read_text()


@pytest.mark.parametrize("head", ["", "# mine\n", "[mcp_servers]\n# all of them\n", "[tui]\n"])
def test_the_only_server_can_be_removed(place: Place, head: str) -> None:
    place.configure(f'{head}[mcp_servers.only]\ncommand = "x"\n')
    removed = run(place, "mcp", "remove", "only")
    assert (removed.status, removed.err) == (0, "removed the MCP server `only`\n")
    assert (place.codex_home / "config.toml").read_text() == head


def test_every_change_can_be_reported_as_json(place: Place) -> None:
    added = run(place, "mcp", "add", "a", "--env", "K_KEY=hunter2", "--json", "--", "x", "--token", "hunter2")
    assert "hunter2" not in added.out
    assert (json.loads(added.out)["name"], json.loads(added.out)["transport"]["command"]) == ("a", "x")
    assert json.loads(run(place, "mcp", "logout", "a", "--json").out) == {"name": "a", "signed_out": False}
    for was_there in (True, False):
        removed = run(place, "mcp", "remove", "a", "--json")
        assert json.loads(removed.out) == {"name": "a", "removed": was_there}

"""A project's MCP servers in the sandbox: what they cannot do there, and what the user lets them do."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support import no_namespaces
from tests.support.fake_responses import FakeResponses, call, fake_model, say
from tests.support.home import Place, toml_value
from tests.support.mcp_servers import odd_words, server
from tests.support.plugins import add_server, enabled, install, make_plugin, write
from tests.support.process import COMMAND, TIMEOUT, Finished, Running, run

# Tries to leave the sandbox, notes what came of it in the project, and is our own server then.
SERVE = """
import pathlib, runpy, socket, sys

def attempt(what):
    try:
        what()
    except OSError as error:
        return "no"
    return "yes"

out, port, *rest = sys.argv[1:]
wrote = attempt(lambda: pathlib.Path(out).write_text("x"))
reached = attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), timeout=5).close())
pathlib.Path("seen").write_text(f"wrote: {wrote}, reached: {reached}")
sys.argv[:] = rest
runpy.run_path(rest[0], run_name="__main__")
"""
# What a run can be held by: the best there is, or Landlock alone, as in most containers.
LANDLOCK = [sys.executable, no_namespaces.__file__]
BACKENDS = pytest.mark.parametrize("wrapper", [[], LANDLOCK], ids=["bubblewrap", "landlock"])


@pytest.fixture
def port() -> Generator[int, None, None]:
    """A port of this machine that answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def settings(place: Place, *, partial: bool = False) -> str:
    """Settings of a user who trusts the project and lets commands write there only."""
    return (
        f"[skills.bundled]\nenabled = false\n[projects.{toml_value(str(place.repo))}]\n"
        'trust_level = "trusted"\n[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n'
        f"[sandbox]\nallow_partial = {str(partial).lower()}\n"
    )


def name_server(place: Place, port: int, file: str = "serve.py") -> Path:
    """Have the project name a server that tries to get out; gives the file it would leave outside."""
    place.write(file, SERVE)
    out = place.home / "escaped"
    words = [str(place.repo / file), str(out), str(port), *odd_words("good", "tools=plain")[1:]]
    place.write(".codex/config.toml", server("theirs", command=sys.executable, args=words))
    return out


def trust(place: Place, *flags: str) -> Finished:
    """Agree to the server; what was said before is replaced."""
    place.configure(settings(place))
    return run(place, "mcp", "trust", "theirs", "--yes", *flags)


def use(place: Place, model: FakeResponses, *, partial: bool = False) -> None:
    """Settings for a model, with what was said about the server."""
    lines = (place.codex_home / "config.toml").read_text().splitlines()
    pin = next(line for line in lines if line.startswith("theirs"))
    place.use_model(model.base_url)
    config = place.codex_home / "config.toml"
    trusted = f"[projects.{toml_value(str(place.repo))}.trusted_mcp_servers]\n{pin}\n"
    config.write_text(config.read_text() + settings(place, partial=partial) + trusted)


def call_it(
    place: Place, *wrapper: str, sandbox: str = "workspace-write", partial: bool = False
) -> tuple[Finished, str]:
    """A run that calls the server's tool, and what the model read of it."""
    with FakeResponses([call("c", "mcp__theirs__plain", {"text": "hello"})], [say("done")]) as model:
        use(place, model, partial=partial)
        with Running([*wrapper, COMMAND, "exec", "-s", sandbox, "go"], env=place.env, cwd=place.repo) as running:
            ended = running.wait()
    return ended, str(model.requests[-1].body["input"][-1])


def seen(place: Place) -> str:
    return (place.repo / "seen").read_text()


@BACKENDS
def test_a_project_s_server_runs_in_the_sandbox(place: Place, port: int, wrapper: list[str]) -> None:
    out = name_server(place, port)
    assert trust(place, "--approve").status == 0
    ended, output = call_it(place, *wrapper, partial=bool(wrapper))
    assert ended.status == 0, ended.err
    assert "said hello" in output, ended.err
    assert (seen(place), out.exists()) == ("wrote: no, reached: no", False)


@BACKENDS
def test_the_network_is_there_for_the_server_that_may_use_it(place: Place, port: int, wrapper: list[str]) -> None:
    out = name_server(place, port)
    assert trust(place, "--approve", "--network").status == 0
    ended, output = call_it(place, *wrapper, partial=bool(wrapper))
    assert "said hello" in output, ended.err
    assert (seen(place), out.exists()) == ("wrote: no, reached: yes", False)


@pytest.mark.parametrize(("sandbox", "file"), [("workspace-write", ".codex/serve.py"), ("read-only", "serve.py")])
def test_one_that_the_user_lets_out_runs_as_the_user(place: Place, port: int, sandbox: str, file: str) -> None:
    out = name_server(place, port, file)
    assert trust(place, "--approve", "--outside").status == 0
    ended, output = call_it(place, sandbox=sandbox)
    assert "said hello" in output, ended.err
    assert (seen(place), out.exists()) == ("wrote: yes, reached: yes", True)


@pytest.mark.parametrize("way", ["file", "link", "landlock"])
def test_a_server_outside_is_not_started_where_commands_may_exchange_its_files(
    place: Place, port: int, way: str
) -> None:
    file = "serve.py" if way == "file" else ".codex/serve.py"
    if way == "link":
        (place.repo / ".codex").mkdir(exist_ok=True)
        (place.repo / "link").symlink_to(".codex")
        file = "link/serve.py"
    out = name_server(place, port, file)
    assert trust(place, "--approve", "--outside").status == 0
    wrapper = LANDLOCK if way == "landlock" else []
    ended, output = call_it(place, *wrapper, partial=way == "landlock")
    assert "said hello" not in output
    assert "is not started outside the sandbox: commands may write" in ended.err
    assert not out.exists()


def test_with_read_only_it_writes_nothing(place: Place, port: int) -> None:
    out = name_server(place, port)
    trust(place, "--approve")
    ended, output = call_it(place, sandbox="read-only")
    # It cannot note what it has seen, and ends; the line says what lets it do more.
    assert "said hello" not in output
    assert "it runs in the sandbox; `codex-py mcp trust theirs` with `--network` or `--outside` allow more" in ended.err
    assert not out.exists()
    assert not (place.repo / "seen").exists()


def test_where_the_sandbox_is_incomplete_it_is_not_started(place: Place, port: int) -> None:
    name_server(place, port)
    trust(place, "--approve")
    ended, _ = call_it(place, *LANDLOCK)
    assert "the sandbox here cannot hold everything" in ended.err
    assert "`codex-py mcp trust theirs --outside` lets it run without a sandbox" in ended.err
    assert not (place.repo / "seen").exists()


@pytest.mark.parametrize("flags", [["--outside"], ["--network"], []])
def test_what_the_user_said_lapses_with_the_server_they_said_it_about(
    place: Place, port: int, flags: list[str]
) -> None:
    out = name_server(place, port)
    trust(place, "--approve", *flags)
    (place.repo / "serve.py").write_text(f"{SERVE}\n# and something else\n")
    ended, _ = call_it(place)
    assert "you have not agreed to what would run" in ended.err
    assert not out.exists()


def test_it_is_shown_where_a_server_runs(place: Place, port: int) -> None:
    name_server(place, port)
    place.configure(settings(place))
    shown: list[tuple[str, str, object]] = []
    for flags in ([], ["--network"], ["--outside"], []):
        said = run(place, "mcp", "trust", "theirs", "--yes", *flags)
        assert said.status == 0
        [listed] = json.loads(run(place, "mcp", "list", "--json").out)
        got = run(place, "mcp", "get", "theirs").out
        [line] = [line for line in got.splitlines() if "sandbox" in line]
        shown.append((said.err.splitlines()[2].strip(), line.strip(), listed["sandbox"]))
        assert line.strip().removeprefix("sandbox: ") in run(place, "mcp", "list").out
    question = "its tools are asked about"
    inside = (f"runs in the sandbox of the session; {question}", "sandbox: in the sandbox", "session")
    assert shown == [
        inside,
        (
            f"runs in the sandbox of the session, with network access; {question}",
            "sandbox: in the sandbox with network",
            "network",
        ),
        (f"runs outside the sandbox, as you; {question}", "sandbox: outside the sandbox", "outside"),
        inside,
    ]


@pytest.mark.parametrize("flags", [["--network", "--outside"], ["--never", "--outside"], ["--never", "--approve"]])
def test_words_that_exclude_each_other_are_refused(place: Place, port: int, flags: list[str]) -> None:
    name_server(place, port)
    refused = trust(place, *flags)
    assert (refused.status, refused.err.count("\n")) == (2, 1)


def test_a_server_elsewhere_needs_no_sandbox(place: Place) -> None:
    place.write(".codex/config.toml", server("theirs", url="https://example.invalid/mcp"))
    refused = trust(place, "--outside")
    assert (refused.status, "is an address: nothing of it runs here" in refused.err) == (2, True)


def test_a_refused_call_says_what_allows_it_and_that_works(place: Place, port: int) -> None:
    name_server(place, port)
    trust(place)
    _, refused = call_it(place)
    assert "the user can allow the tools of this server with `codex-py mcp trust theirs --approve`" in refused
    trust(place, "--approve")
    _, output = call_it(place)
    assert "said hello" in output


def test_a_killed_session_leaves_no_server_behind(place: Place, port: int) -> None:
    name_server(place, port)
    fifo = place.repo / "alive"
    os.mkfifo(fifo)
    # It holds the pipe open for as long as it lives, and whatever it leaves behind does too.
    place.write("serve.py", f'alive = open("alive", "w", buffering=1)\nalive.write("up\\n")\n{SERVE}')
    trust(place, "--approve")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with FakeResponses([say("done")], excuse={"unplayed"}) as model:
            use(place, model)
            with Running([COMMAND, "exec", "-s", "workspace-write", "go"], env=place.env, cwd=place.repo) as running:
                assert read_to(reader) == b"up\n"
                running.send_signal(signal.SIGKILL)
                running.wait()
                assert read_to(reader) == b""
    finally:
        os.close(reader)


def read_to(reader: int) -> bytes:
    """What comes next out of a pipe, or "" when nobody holds its other end any more."""
    ready, _, _ = select.select([reader], [], [], TIMEOUT)
    assert ready, "nothing came"
    return os.read(reader, 100)


@BACKENDS
def test_a_server_of_a_plugin_runs_in_the_sandbox_when_the_user_says_so(
    place: Place, tmp_path: Path, port: int, wrapper: list[str]
) -> None:
    out = place.home / "escaped"
    directory = make_plugin(tmp_path / "p")
    write(directory / "serve.py", SERVE)
    words = ["${PLUGIN_ROOT}/serve.py", str(out), str(port), *odd_words("good", "tools=plain")[1:]]
    servers = {"theirs": {"command": sys.executable, "args": words}}
    write(directory / ".mcp.json", json.dumps({"mcpServers": servers}))
    install(place, directory)
    table = f'{enabled()}[plugins."demo@local".mcp_servers.theirs]\ndefault_tools_approval_mode = "approve"\n'
    seen_with: dict[str, str] = {}
    for sandbox in ("session", "network", "outside"):
        with fake_model(place, [call("c", "mcp__theirs__plain", {"text": "hello"})], [say("done")]) as model:
            config = place.codex_home / "config.toml"
            more = settings(place, partial=bool(wrapper)) + table + f'sandbox = "{sandbox}"\n'
            config.write_text(config.read_text() + more)
            argv = [*wrapper, COMMAND, "exec", "-s", "workspace-write", "go"]
            with Running(argv, env=place.env, cwd=place.repo) as running:
                ended = running.wait()
        assert "said hello" in str(model.requests[-1].body["input"][-1]), ended.err
        seen_with[sandbox] = seen(place)
    assert seen_with == {
        "session": "wrote: no, reached: no",
        "network": "wrote: no, reached: yes",
        "outside": "wrote: yes, reached: yes",
    }


def test_a_server_of_a_plugin_with_another_word_for_its_sandbox_is_left_out(place: Place, tmp_path: Path) -> None:
    directory = make_plugin(tmp_path / "p")
    add_server(directory)
    install(place, directory)
    place.configure(f'{enabled()}[plugins."demo@local".mcp_servers.theirs]\nsandbox = "yes"\n')
    listed = run(place, "mcp", "list", "--json")
    assert json.loads(listed.out) == []
    assert "its `sandbox` is none of `session`, `network`, `outside`" in listed.err

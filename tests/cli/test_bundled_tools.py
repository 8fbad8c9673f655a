"""Commands find the bundled `rg`, and not the Python that runs this program."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import BIN, Place
from tests.support.hooks import entry, use_hooks
from tests.support.mcp_servers import server
from tests.support.process import run, start
from tests.unit.command_builders import output_of

SYSTEM = "/usr/bin:/bin"
NAMES = "for name in python pip pytest uvicorn idna; do command -v $name; done"
REPORT = f'echo "$PATH"; {NAMES}; rg --version | head -1'


@pytest.fixture
def plain(place: Place) -> Place:
    """A user with a Python of their own, no `rg`, and without our own directory on the `PATH`."""
    if shutil.which("rg", path=SYSTEM):
        pytest.skip("this system has an rg of its own")
    own = place.home / "own"
    own.mkdir()
    for name in ("python", "pip"):
        (own / name).write_text("#!/bin/sh\n")
        (own / name).chmod(0o755)
    # What the machine's own profile makes of it is not tested here.
    (place.home / ".profile").write_text(f"PATH={own}:{SYSTEM}\n")
    return place.with_env(PATH=f"{own}:{SYSTEM}")


def check(place: Place, report: str) -> None:
    path, python, pip, version = report.splitlines()
    assert (python, pip, version[:8]) == (f"{place.home}/own/python", f"{place.home}/own/pip", "ripgrep ")
    added = [directory for directory in path.split(":") if directory not in place.env["PATH"].split(":")]
    assert [os.listdir(directory) for directory in added] == [["rg"]]  # noqa: PTH208 - names are all it takes
    assert Path(added[0], "rg").resolve() == (BIN / "rg").resolve()


@pytest.mark.parametrize("sandbox", ["read-only", "workspace-write", "danger-full-access"])
@pytest.mark.parametrize("login", [True, False])
def test_a_command_finds_rg_and_the_user_s_python(plain: Place, sandbox: str, login: bool) -> None:
    with FakeResponses([call("c", "exec_command", {"cmd": REPORT, "login": login})], [say("done")]) as model:
        plain.use_model(model.base_url)
        assert run(plain, "exec", "-s", sandbox, "go").status == 0
    check(plain, output_of(model.requests[-1].output_of("c")))


def test_a_hook_a_server_and_notify_have_nothing_of_ours(plain: Place) -> None:
    pipes = {name: plain.home / name for name in ("hook", "server", "notify")}
    lines = {name: f'echo "$PATH" > {pipe}' for name, pipe in pipes.items()}
    for pipe in pipes.values():
        os.mkfifo(pipe)
    readers = [os.fdopen(os.open(pipe, os.O_RDWR), "rb") for pipe in pipes.values()]
    use_hooks(plain, UserPromptSubmit=[entry(lines["hook"])])
    with FakeResponses([say("done")]) as model:
        plain.use_model(model.base_url, f"notify = {json.dumps(['/bin/sh', '-c', lines['notify']])}")
        config = (plain.codex_home / "config.toml").read_text()
        plain.configure(config + server("mine", command="/bin/sh", args=["-c", lines["server"]]))
        assert run(plain, "exec", "go").status == 0
    for reader in readers:
        with reader:
            # What lies in `/tmp`, as the home of this test does, is not on the path of what runs outside the sandbox.
            assert reader.readline().decode().strip() == SYSTEM


def test_a_task_of_a_batch_finds_the_same(plain: Place, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "one", "prompt": "go"}\n')
    with FakeResponses([call("c", "exec_command", {"cmd": REPORT})], [say("done")]) as model:
        plain.use_model(model.base_url)
        ended = run(plain, "batch", tasks, "--out", tmp_path / "out")
    assert ended.status == 0, ended.err
    check(plain, output_of(model.requests[-1].output_of("c")))


def test_the_command_of_a_program_that_uses_the_server_finds_the_same(plain: Place) -> None:
    with start(plain, "app-server", stdin="open") as running:
        assert running.popen.stdin is not None
        calls = [
            {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}},
            {"id": 2, "method": "command/exec", "params": {"command": ["/bin/sh", "-c", REPORT]}},
        ]
        running.popen.stdin.write(b"".join(json.dumps(one).encode() + b"\n" for one in calls))
        running.popen.stdin.flush()
        running.wait_until(lambda one: b'"id":2' in one.stdout.replace(b" ", b""))
    answer = next(one for line in running.stdout.splitlines() if (one := json.loads(line)).get("id") == 2)
    check(plain, answer["result"]["stdout"])

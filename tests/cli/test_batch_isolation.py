"""Tasks of `codex-py batch` are forked from one parent: none has a thread, a file or a secret of another."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.drills.batch import task_pids
from tests.support.fake_responses import Request, call, fake_model, hang, repeat, say
from tests.support.home import Place
from tests.support.process import TIMEOUT, Running, run, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="tasks are forked on Linux only")
FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'
SECRETS = {"a": "the-secret-of-task-a-4711", "b": "the-secret-of-task-b-0815"}
# Signals that are ignored, blocked or handled, and the limits and modes that a child inherits.
STATE = r"(?m)^(SigBlk|SigIgn|Umask|Seccomp|NoNewPrivs):\s*(\S+)"


@pytest.fixture
def place(place: Place) -> Place:
    """Started cold, for Python reads the variable: with a warm start, a copy of it would be the parent of the tasks."""
    return place.with_env(PYTHONNOUSERSITE="1")


@contextmanager
def hanging(place: Place, out: Path, *, killed: bool = False) -> Generator[tuple[Running, list[int]]]:
    """A batch of two tasks that both wait for the model, and the processes of the tasks."""
    tasks = place.home.parent / "tasks.jsonl"
    rows = [{"id": name, "prompt": f"{secret}?"} for name, secret in SECRETS.items()]
    tasks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    release = threading.Event()
    with (
        fake_model(place, repeat(lambda _: [hang(release), say("done")]), excuse={"threads"}) as model,
        start(place, "batch", tasks, "--out", out, "--jobs", "2") as running,
    ):
        model.wait_for(2)
        yield running, task_pids(running.pid)
        if killed:
            running.popen.kill()
        release.set()
        assert running.wait().status == (-signal.SIGKILL if killed else 0)


def memory_of(pid: int) -> bytes:
    """All that a process can write to, which is where its own texts are."""
    pieces: list[bytes] = []
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            if " rw" in line and "[v" not in line:
                with suppress(OSError):
                    memory.seek(first)
                    pieces.append(memory.read(last - first))
    return b"".join(pieces)


def files_of(pid: int) -> dict[int, str]:
    return {int(entry.name): str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()}


def state_of(pid: int) -> list[tuple[str, str]]:
    return re.findall(STATE, Path(f"/proc/{pid}/status").read_text())


def test_a_task_has_no_file_thread_or_secret_of_another(place: Place, tmp_path: Path) -> None:
    with hanging(place, tmp_path / "out") as (running, pids):
        owners = {pid: files_of(pid)[0].split("/")[-2] for pid in pids}
        assert sorted(owners.values()) == ["a", "b"]
        [parent] = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in pids}
        assert parent != running.pid
        assert len(list(Path(f"/proc/{parent}/task").iterdir())) == 1
        for pid, name in owners.items():
            other = "b" if name == "a" else "a"
            own, others = files_of(pid), files_of(next(one for one in pids if one != pid))
            assert [link for link in own.values() if f"/{other}/" in link] == []
            shared = {link for link in own.values() if link.startswith(("pipe:", "socket:"))} & set(others.values())
            assert shared == set()
            memory = memory_of(pid)
            assert SECRETS[name].encode() in memory
            assert SECRETS[other].encode() not in memory
        assert not any(secret.encode() in memory_of(parent) for secret in SECRETS.values())


def test_a_task_has_the_signals_and_the_environment_of_a_plain_run(place: Place, tmp_path: Path) -> None:
    release = threading.Event()
    with fake_model(place, [hang(release), say("done")]) as model, start(place, "exec", "go") as running:
        model.wait_for(1)
        plain = state_of(running.pid)
        release.set()
        running.wait()
    with hanging(place, tmp_path / "out") as (_, pids):
        assert [state_of(pid) for pid in pids] == [plain, plain]


def test_commands_of_a_task_have_the_environment_of_the_batch(place: Place, tmp_path: Path) -> None:
    place, out, tasks = place.with_env(MINE="kept", TZ="Asia/Tokyo"), tmp_path / "out", tmp_path / "tasks.jsonl"
    tasks.write_text('{"id": "a", "prompt": "p"}\n')

    def answer(request: Request) -> Any:
        if any(entry["type"] == "function_call_output" for entry in request.input):
            return [say("done")]
        return [call("c", "exec_command", {"cmd": "env -0 > env; date +%Z > zone; umask > umask", "login": False})]

    with fake_model(place, repeat(answer), excuse={"threads"}, top=FULL_ACCESS):
        assert run(place, "exec", "go").status == 0
        assert run(place, "batch", tasks, "--out", out).status == 0
    plain, forked = environment(place.repo / "env"), environment(out / "a/work/env")
    assert forked.pop("CODEX_PY_PACE_FILE", None) in (None, str(out / ".pace"))
    assert forked == plain
    assert (plain["MINE"], (out / "a/work/zone").read_text()) == ("kept", "JST\n")
    assert (out / "a/work/umask").read_text() == (place.repo / "umask").read_text()


def environment(file: Path) -> dict[str, str]:
    """The variables of a command that do not differ from run to run."""
    pairs = (entry.partition("=") for entry in file.read_text().split("\0") if entry)
    found = {name: value for name, _, value in pairs}
    for name in ("PWD", "CODEX_COMMAND_MARK", "CODEX_THREAD_ID", "CODEX_SESSION_ID", "_"):
        found.pop(name, None)
    return found


def test_where_no_warm_parent_can_be_tasks_are_plain_processes(place: Place, tmp_path: Path) -> None:
    # The library puts its socket there, whose path has room for a hundred characters.
    directory = tmp_path / ("x" * 120)
    directory.mkdir()
    with hanging(place.with_env(TMPDIR=str(directory)), tmp_path / "out") as (running, _):
        workers = [pid for pid in children_of(running.pid) if "codex_py.cli.worker" in words_of(pid)]
        assert len(workers) == 2


@pytest.mark.parametrize("end", ["done", "killed", "help", "wrong"])
def test_nothing_is_left_in_the_temporary_directory(place: Place, tmp_path: Path, end: str) -> None:
    # The address of a socket has 107 bytes at most.
    temporary = Path(mkdtemp(prefix="batch-"))
    place = place.with_env(TMPDIR=str(temporary))
    if end in ("done", "killed"):
        with hanging(place, tmp_path / "out", killed=end == "killed") as (_, pids):
            assert "pymp-" in {entry.name[:5] for entry in temporary.iterdir()}
            assert len(pids) == 2
    else:
        arguments = {"help": ["--help"], "wrong": ["nowhere.jsonl", "--retry", "sometimes"]}[end]
        run(place, "batch", *arguments)
    deadline = time.monotonic() + TIMEOUT
    while any(temporary.iterdir()):
        assert time.monotonic() < deadline, "the parent of the tasks leaves its socket"
        os.sched_yield()
    temporary.rmdir()


def children_of(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def words_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")

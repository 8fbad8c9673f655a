"""What checkpoints, exports and searches of sessions cost: for `bench_promises.py` and `measure_checkpoints`."""

from __future__ import annotations

import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

ROUNDS = 5
MIB = 1 << 20
WORDS = " ".join(f"word{number}" for number in range(80))


def used() -> float:
    """CPU time in seconds, with that of the programs that were started and have ended."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cost(work: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall time in seconds."""
    before, began = used(), time.perf_counter()
    work()
    return used() - before, time.perf_counter() - began


@contextmanager
def working_tree(size: int, *, is_tracked: bool = True) -> Iterator[tuple[Path, dict[str, str], Callable[[], object]]]:
    """A git working tree of so many files, 100 a directory, its environment, and what takes a snapshot of it."""
    from codex_py.checkpoints.file_reader import Caps
    from codex_py.checkpoints.snapshot import Area, Photographer
    from codex_py.checkpoints.store import CheckpointStore
    from codex_py.protocol.policy import WorkspaceWrite
    from tests.support.home import clean_env

    with tempfile.TemporaryDirectory(prefix="measure-", ignore_cleanup_errors=True) as directory:
        top = Path(directory)
        repo, env = top / "repo", clean_env(top, top / "home")
        for number in range(size):
            path = repo / f"d{number // 100}" / f"file{number}.py"
            if number % 100 == 0:
                path.parent.mkdir(parents=True)
            path.write_text(f"# file {number}\n" * 20)
        git(repo, env, "init", "-q")
        if is_tracked:
            git(repo, env, "add", "-A")
        git(repo, env, "commit", "-qm", "first", "--allow-empty")
        store = CheckpointStore(top / "home/checkpoints/x")
        photographer = Photographer(store, env, Caps(20_000, 500 * MIB, 20 * MIB))
        area = Area((str(repo),), whole_tree=False, excluded=())
        yield repo, env, lambda: photographer.take(area, WorkspaceWrite(), {})


def git(repo: Path, env: dict[str, str], *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0")
    subprocess.run(["git", *identity, *arguments], cwd=repo, env=env, check=True, capture_output=True)


def clean_checkpoint(size: int) -> float:
    """CPU of a checkpoint in which nothing has changed."""
    with working_tree(size) as (_, _, take):
        take()
        return statistics.median(cost(take)[0] for _ in range(ROUNDS))


def long_export(form: str) -> float:
    """CPU of the export of a session of 2,000 turns, with three calls each."""
    with tempfile.TemporaryDirectory(prefix="measure-") as directory:
        session = write_session(Path(directory), 2_000)
        arguments = ["export", session, "--format", form, "-o", f"{directory}/out"]
        return cost(lambda: sessions(Path(directory), arguments))[0]


def wide_search() -> float:
    """CPU of a search in 5,000 sessions, which one before it has listed."""
    with tempfile.TemporaryDirectory(prefix="measure-") as directory:
        for _ in range(5_000):
            write_session(Path(directory), 2)
        arguments = ["search", "word7 word42", "-C", directory, "--json"]
        sessions(Path(directory), arguments)
        return statistics.median(cost(lambda: sessions(Path(directory), arguments))[0] for _ in range(ROUNDS))


def sessions(home: Path, arguments: list[str]) -> None:
    from codex_py.cli.sessions import run

    os.environ["CODEX_HOME"] = str(home)
    with redirect_stdout(io.StringIO()):
        run(arguments)


def write_session(home: Path, turns: int) -> str:
    """A stored session; its id."""
    from codex_py.protocol.encoding import encode_json, timestamp, uuid7
    from codex_py.rollout.format import encode_line, rollout_path

    session, now = str(uuid7()), timestamp()
    path = rollout_path(home, session, when=now)
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {"id": session, "timestamp": now, "cwd": str(home), "source": "cli", "model_provider": "openai"}
    records: list[tuple[str, dict[str, Any]]] = [("session_meta", meta)]
    for turn in range(turns):
        records += _turn(turn)
    lines = [encode_line(at, name, encode_json(payload), timestamp=now) for at, (name, payload) in enumerate(records)]
    path.write_bytes(b"".join(lines))
    return session


def _turn(turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "event_msg", {"type": "task_started", "turn_id": str(turn)}
    yield "response_item", _message("user", "input_text", f"{turn} {WORDS}")
    yield "event_msg", {"type": "user_message", "message": str(turn)}
    for number in range(3):
        call = f"c{turn}-{number}"
        arguments = json.dumps({"cmd": "cat file"})
        yield (
            "response_item",
            {"type": "function_call", "name": "exec_command", "call_id": call, "arguments": arguments},
        )
        output = f"Process exited with code 0\nOutput:\n{WORDS}"
        yield "response_item", {"type": "function_call_output", "call_id": call, "output": output}
    yield "response_item", _message("assistant", "output_text", f"**Done.**\n\n- {WORDS}\n- `x`\n")
    yield "event_msg", {"type": "task_complete", "turn_id": str(turn)}


def _message(role: str, part: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}

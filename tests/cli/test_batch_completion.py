"""`codex-py batch` loses nothing of a task that is done: what is missing is written, without asking the model."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.cli.test_batch import git, prompt_of, report_of, run_batch, serving, write_tasks
from tests.support.fake_responses import Request, call, repeat, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.script import Stream

FILES = ("changes.patch", "events.jsonl", "result.json", "transcript.md")
ARGUMENTS = ("-s", "workspace-write", "--branch", "b/{id}", "--commit")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def row(place: Place, name: str = "a") -> dict[str, str]:
    base = git(place, "rev-parse", "HEAD").strip()
    return {"instance_id": name, "repo": str(place.repo), "base_commit": base, "problem_statement": f"{name}.txt"}


def writing(request: Request) -> Stream:
    """A model that writes a file, named by the prompt."""
    if any(entry["type"] == "function_call_output" for entry in request.input):
        return [say("done")]
    return [call("c1", "exec_command", {"cmd": f"echo made > {prompt_of(request)}", "login": False})]


def check(place: Place, out: Path, name: str = "a") -> None:
    """Everything of a finished task is there, and right."""
    result = json.loads((out / name / "result.json").read_text())
    assert (result["status"], result["answer"], result.get("patch_error")) == ("ok", "done", None)
    assert result["files_changed"] == [{"path": f"{name}.txt", "kind": "add"}]
    patch = (out / name / "changes.patch").read_text()
    assert "+made\n" in patch
    assert "done" in (out / name / "transcript.md").read_text()
    assert "turn.completed" in (out / name / "events.jsonl").read_text()
    predictions = {p["instance_id"]: p for p in map(json.loads, (out / "predictions.jsonl").read_text().splitlines())}
    assert predictions[name]["model_patch"] == patch
    assert git(place, "show", f"b/{name}:{name}.txt") == "made\n"
    assert report_of(out)[name]["files_changed"] == "1"


@pytest.fixture
def lethal(place: Place) -> Iterator[Callable[[str, int], Place]]:
    """A place where git kills the run that uses it, at a subcommand of its own for writing patches, so many times."""
    git_itself = shutil.which("git")
    # Programs below `/tmp` are not run for the user.
    with TemporaryDirectory(dir="/var/tmp") as directory:

        def make(subcommand: str, times: int) -> Place:
            lives = Path(directory, "lives")
            lives.write_text("x\n" * times)
            script = Path(directory, "git")
            script.write_text(
                f'#!/bin/sh\nfor word do case "$word" in {subcommand})\n'
                f'[ -s {lives} ] && {{ sed -i 1d {lives}; kill -9 "$PPID"; exit 1; }};; esac; done\n'
                f'exec {git_itself} "$@"\n'
            )
            script.chmod(0o755)
            return place.with_env(PATH=f"{directory}:{place.env['PATH']}")

        yield make


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("subcommand", ["fast-import", "refs/heads/before"])
def test_a_task_that_is_killed_between_its_answer_and_its_files_keeps_its_patch(
    out: Path, lethal: Callable[[str, int], Place], subcommand: str, times: int
) -> None:
    place = lethal(subcommand, times)
    tasks = write_tasks(place, [row(place)])
    with serving(repeat(writing)) as model:
        first = run_batch(place, out, tasks, *ARGUMENTS, model=model)
        assert (first.status, report_of(out)["a"]["code"]) == ((0, "") if times < 3 else (1, "crash")), first.err
        again = run_batch(place, out, tasks, *ARGUMENTS)
        assert (again.status, len(model.requests)) == (0, 2), again.err
    check(place, out)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_so_does_a_run_of_exec_where_it_began(
    out: Path, lethal: Callable[[str, int], Place], is_elsewhere: bool
) -> None:
    place = lethal("fast-import", 1)
    arguments = ("exec", "-s", "workspace-write", "--session-id", "job", "--artifacts", out, "a.txt")
    with serving(repeat(writing)) as model:
        place.use_model(model.base_url)
        assert run(place, *arguments).status == -signal.SIGKILL
        assert not (out / "result.json").exists()
        other = place.home.parent / "other"
        git(place, "clone", "-q", str(place.repo), str(other))
        again = run(place, *arguments, cwd=other if is_elsewhere else None)
        assert (again.status, len(model.requests)) == (0, 2), again.err
    result = json.loads((out / "result.json").read_text())
    assert (result["answer"], result["is_stored"]) == ("done", True)
    if is_elsewhere:
        assert (result["patch_error"], result["files_changed"]) == ("the task began in another directory", [])
    else:
        assert (result.get("patch_error"), result["files_changed"]) == (None, [{"path": "a.txt", "kind": "add"}])


@pytest.mark.parametrize(
    "lost", [("changes.patch",), ("result.json",), ("events.jsonl", "transcript.md"), FILES, (*FILES, "task.json")]
)
@pytest.mark.parametrize("budget", [(), ("--max-usd", "0.000001")], ids=["", "budget"])
def test_the_same_command_writes_what_is_missing(
    place: Place, out: Path, lost: tuple[str, ...], budget: tuple[str, ...]
) -> None:
    if budget and "task.json" in lost:
        pytest.skip("without its record a task may cost something")
    tasks = write_tasks(place, [row(place, "a"), row(place, "b")])
    with serving(repeat(writing)) as model:
        assert run_batch(place, out, tasks, *ARGUMENTS, model=model).status == 0
        asked = len(model.requests)
        kept = {path: path.stat().st_mtime_ns for path in (out / "b").glob("*.*")}
        for name in lost:
            (out / "a" / name).unlink()
        (out / "predictions.jsonl").unlink()
        done = run_batch(place, out, tasks, *ARGUMENTS, *budget)
        assert (done.status, len(model.requests)) == (0, asked), done.err
    assert {path: path.stat().st_mtime_ns for path in (out / "b").glob("*.*")} == kept
    for name in ("a", "b"):
        check(place, out, name)


def test_a_patch_error_of_an_earlier_version_is_repaired(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [row(place)])
    with serving(repeat(writing)) as model:
        assert run_batch(place, out, tasks, *ARGUMENTS, model=model).status == 0
        result = json.loads((out / "a/result.json").read_text())
        wrong: dict[str, Any] = {
            **result,
            "files_changed": [],
            "patch_error": "the run that gave the answer had no `--artifacts`",
        }
        (out / "a/result.json").write_text(json.dumps(wrong))
        (out / "a/changes.patch").unlink()
        record = json.loads((out / "a/task.json").read_text())
        (out / "a/task.json").write_text(json.dumps({**record, "files_changed": 0, "commit": ""}))
        git(place, "branch", "-D", "b/a")
        done = run_batch(place, out, tasks, *ARGUMENTS, "--json")
        assert (done.status, len(model.requests)) == (0, 2), done.err
    assert {"type": "task.completed", "id": "a", "problem": None} in done.events
    check(place, out)


@pytest.mark.parametrize("lost", ["exec-runs", "sessions"])
def test_a_patch_of_which_nothing_is_on_record_is_made_from_the_base(place: Place, out: Path, lost: str) -> None:
    tasks = write_tasks(place, [row(place)])
    with serving(repeat(writing)) as model:
        assert run_batch(place, out, tasks, *ARGUMENTS, model=model).status == 0
        patch = (out / "a/changes.patch").read_bytes()
        (out / "a/changes.patch").unlink()
        shutil.rmtree(place.codex_home / lost)
        objects = git(place, "count-objects")
        done = run_batch(place, out, tasks, *ARGUMENTS)
        assert (done.status, len(model.requests)) == (0, 2), done.err
    assert (out / "a/changes.patch").read_bytes() == patch
    assert git(place, "count-objects") == objects
    check(place, out)


def test_a_task_whose_session_is_gone_is_named_and_not_done_again(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [row(place)])
    with serving(repeat(writing)) as model:
        assert run_batch(place, out, tasks, *ARGUMENTS, model=model).status == 0
        result = (out / "a/result.json").read_bytes()
        (out / "a/transcript.md").unlink()
        shutil.rmtree(place.codex_home / "sessions")
        done = run_batch(place, out, tasks, *ARGUMENTS)
        assert (done.status, len(model.requests)) == (0, 2), done.err
    assert "a: cannot write its files again: error: the session of the task is gone, or has no answer to it" in done.err
    assert (out / "a/result.json").read_bytes() == result

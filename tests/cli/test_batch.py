"""`codex-py batch`, as a script sees it: what runs, what is left, and what the same command does again."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import threading
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.drills.batch import task_pids
from tests.support.fake_responses import FakeResponses, Request, api_error, call, hang, repeat, say, tokens
from tests.support.home import Place
from tests.support.hostile import hostile_repository
from tests.support.process import Finished, run, start
from tests.support.script import Play, Repeat, Stream
from tests.support.terminal import Terminal


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def write_tasks(place: Place, rows: list[dict[str, Any]], name: str = "tasks.jsonl") -> str:
    path = place.home.parent / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def run_batch(place: Place, out: Path, *arguments: str, model: FakeResponses | None = None) -> Finished:
    if model is not None:
        place.use_model(model.base_url)
    return run(place, "batch", "--out", str(out), *arguments)


def report_of(out: Path) -> dict[str, dict[str, str]]:
    with (out / "report.csv").open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


IDENTITY = ("-c", "user.name=t", "-c", "user.email=t@example.com")


def serving(*script: Play | Repeat) -> FakeResponses:
    """A model for many sessions."""
    return FakeResponses(*script, excuse={"threads"})


def prompt_of(request: Request) -> str:
    return request.texts("user")[-1]


def answering(request: Request) -> Stream:
    return [say(f"answer to {prompt_of(request)}")]


def test_each_task_runs_once_and_its_files_are_below_out(place: Place, out: Path) -> None:
    tasks = write_tasks(
        place, [{"id": "a", "prompt": "first"}, {"id": "b", "prompt": "second", "repo": str(place.repo)}]
    )
    with serving(repeat(answering)) as model:
        done = run_batch(place, out, tasks, model=model)
        again = run_batch(place, out, tasks)
        assert (done.status, again.status, len(model.requests)) == (0, 0, 2), done.err + again.err
    results = {name: json.loads((out / name / "result.json").read_text()) for name in ("a", "b")}
    assert {name: (result["status"], result["answer"]) for name, result in results.items()} == {
        "a": ("ok", "answer to first"),
        "b": ("ok", "answer to second"),
    }
    assert {name: row["status"] for name, row in report_of(out).items()} == {"a": "ok", "b": "ok"}
    assert (out / "b/work/README.md").is_file()
    assert 'href="a/transcript.md"' in (out / "report.html").read_text()


def test_a_task_that_was_done_is_not_repeated_when_its_row_changes_and_that_is_said(place: Place, out: Path) -> None:
    with serving(repeat(answering)) as model:
        run_batch(place, out, write_tasks(place, [{"id": "a", "prompt": "first"}]), model=model)
        again = run_batch(place, out, write_tasks(place, [{"id": "a", "prompt": "other"}]))
        assert (again.status, len(model.requests)) == (0, 1)
    assert "note: done before, and not repeated although the row has changed: a\n" in again.err


def test_a_row_sets_options_of_exec_and_a_template_fills_its_prompt(place: Place, out: Path) -> None:
    table = place.home.parent / "tasks.csv"
    table.write_text('id,module,model,config\n1,"a,b",gpt-5.1,model_verbosity="low"\n2,c,,\n')
    with serving(repeat(answering)) as model:
        done = run_batch(place, out, str(table), "--prompt", "test {module} {{so}}", "--jobs", "1", model=model)
        assert done.status == 0, done.err
        question = [(prompt_of(request), request.body["model"]) for request in model.requests]
        assert question == [("test a,b {so}", "gpt-5.1"), ("test c {so}", "gpt-5.1-codex")]
        assert model.requests[0].body["text"]["verbosity"] == "low"


def test_a_list_of_repositories_is_a_batch(place: Place, out: Path) -> None:
    other = place.home.parent / "other"
    subprocess.run(["git", "clone", "-q", place.repo, other], check=True, env=place.env)
    listed = place.home.parent / "repos.txt"
    listed.write_text(f"# all of them\n{place.repo}\nfile://{other}\n")
    with serving(repeat(answering)) as model:
        done = run_batch(place, out, "--repos", str(listed), "--prompt", "migrate {id}", model=model)
        assert done.status == 0, done.err
        assert sorted(map(prompt_of, model.requests)) == ["migrate other", "migrate repo"]
    assert (out / "other/work/README.md").is_file()


def test_failed_tasks_are_done_again_and_only_those_asked_for(place: Place, out: Path) -> None:
    rows = [{"id": name, "prompt": name} for name in ("good", "refused", "later")]
    tasks, broken = write_tasks(place, rows), {"refused", "later"}

    def answer(request: Request) -> Any:
        if prompt_of(request) in broken:
            return api_error(403, "not for you") if prompt_of(request) == "refused" else api_error(400, "wrong")
        return answering(request)

    with serving(repeat(answer)) as model:
        first = run_batch(place, out, tasks, model=model)
        codes = {name: row["code"] for name, row in report_of(out).items()}
        assert (first.status, codes) == (1, {"good": "", "refused": "auth", "later": "internal"}), first.err
        assert "1 of 3 tasks done; 2 failed (1 auth, 1 internal)" in first.err
        broken.clear()
        question = len(model.requests)
        none = run_batch(place, out, tasks, "--retry", "none")
        assert (none.status, len(model.requests)) == (1, question)
        run_batch(place, out, tasks, "--retry", "auth")
        assert {name: row["status"] for name, row in report_of(out).items()} == {
            "good": "ok",
            "refused": "ok",
            "later": "failed",
        }
        assert run_batch(place, out, tasks).status == 0
        assert len(model.requests) == question + 2


def test_one_interrupt_lets_running_tasks_end_and_the_same_command_goes_on(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": str(number), "prompt": f"p{number}"} for number in range(3)])
    release = threading.Event()
    with serving([hang(release), say("one")], repeat(answering)) as model:
        place.use_model(model.base_url)
        with start(place, "batch", tasks, "--out", out, "--jobs", "1") as running:
            model.wait_for(1)
            running.send_signal(signal.SIGINT)
            running.wait_until(lambda it: b"letting the running tasks end" in it.stderr)
            release.set()
            stopped = running.wait()
        assert (stopped.status, len(model.requests)) == (130, 1)
        assert Counter(row["status"] for row in report_of(out).values()) == {"ok": 1, "pending": 2}
        assert run_batch(place, out, tasks).status == 0
        assert len(model.requests) == 3


def test_two_interrupts_stop_what_runs_and_the_same_command_goes_on(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "long"}])
    with serving([hang(60.0), say("never")], repeat(lambda _: [say("done")])) as model:
        place.use_model(model.base_url)
        with start(place, "batch", tasks, "--out", out) as running:
            model.wait_for(1)
            running.send_signal(signal.SIGINT)
            running.wait_until(lambda it: b"letting the running tasks end" in it.stderr)
            running.send_signal(signal.SIGINT)
            assert running.wait().status == 130
        assert report_of(out)["a"]["status"] == "pending"
        done = run_batch(place, out, tasks)
        assert (done.status, report_of(out)["a"]["status"]) == (0, "ok"), done.err


def test_no_task_is_lost_when_the_batch_is_killed(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": str(number), "prompt": f"p{number}"} for number in range(4)])
    with serving(answering, [hang(60.0), say("never")], repeat(answering)) as model:
        place.use_model(model.base_url)
        with start(place, "batch", tasks, "--out", out, "--jobs", "1") as running:
            model.wait_for(2)
            running.popen.kill()
            running.wait()
        done = run_batch(place, out, tasks)
        assert done.status == 0, done.err
        # The one that was cut off goes on in its session.
        assert Counter(request.texts("user")[-1][:2] for request in model.requests)["p0"] == 1
    assert {row["status"] for row in report_of(out).values()} == {"ok"}


def test_a_directory_with_the_sessions_in_it_goes_on_elsewhere(place: Place, out: Path, tmp_path: Path) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}, {"id": "b", "prompt": "q"}])
    arguments = (tasks, "--jobs", "1", "-s", "danger-full-access", "--session-dir")
    step = [call("c1", "exec_command", {"cmd": "echo 1 > made"})]
    with serving(step, [hang(60.0), say("never")], repeat(answering)) as model:
        place.use_model(model.base_url)
        with start(place, "batch", "--out", out, *arguments, out / ".sessions") as running:
            model.wait_for(2)
            running.popen.kill()
            running.wait()
        assert not (place.codex_home / "sessions").exists()
        moved = out.rename(tmp_path / "elsewhere")
        done = run_batch(place, moved, *arguments, str(moved / ".sessions"))
        assert done.status == 0, done.err
        texts = model.requests[2].texts("user")
        assert any(f"What was in `{out}` is in `{moved}` now." in text for text in texts)
        assert "p" in texts
    assert {row["status"] for row in report_of(moved).values()} == {"ok"}
    result = json.loads((moved / "a/result.json").read_text())
    assert [entry["path"] for entry in result["files_changed"]] == ["made"]
    assert sorted(path.name for path in (moved / ".sessions").iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        '{"status": "ok"}',
        '{"status": "done", "attempts": 1}',
        '{"status": "ok", "attempts": 1, "cost_usd": "much"}',
        '{"status": "failed", "attempts": 1, "seconds": null, "code": 7}',
    ],
)
def test_a_damaged_record_is_written_again_without_asking_the_model(place: Place, out: Path, damaged: str) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}])
    with serving(repeat(answering)) as model:
        assert run_batch(place, out, tasks, model=model).status == 0
        (out / "a/task.json").write_text(damaged)
        done = run_batch(place, out, tasks)
        assert (done.status, report_of(out)["a"]["status"], len(model.requests)) == (0, "ok", 1), done.err


def test_a_worker_that_is_killed_is_replaced(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}])
    with serving([hang(60.0), say("never")], repeat(lambda _: [say("done")])) as model:
        place.use_model(model.base_url)
        with start(place, "batch", tasks, "--out", out) as running:
            model.wait_for(1)
            for pid in task_pids(running.pid):
                os.kill(pid, signal.SIGKILL)
            done = running.wait()
    assert (done.status, report_of(out)["a"]["attempts"]) == (0, "2"), done.err
    assert "a: crash; again" in done.err


def test_a_rate_limit_of_one_task_holds_all(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": str(number), "prompt": f"p{number}"} for number in range(3)])
    limited = api_error(429, "slow down", headers={"retry-after": "2"})
    with serving(lambda _: limited, repeat(answering)) as model:
        done = run_batch(place, out, tasks, "--jobs", "1", "--json", model=model)
        assert done.status == 0, done.err
        times = [request.received_at for request in model.requests]
    assert len(times) == 4
    assert times[1] - times[0] >= 2.0
    assert [event["type"] for event in done.events][:2] == ["batch.started", "task.started"]
    assert done.events[-1]["type"] == "batch.ended"
    assert done.events[-1]["ok"] == 3


def test_the_batch_stops_at_so_many_failures(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": str(number), "prompt": f"p{number}"} for number in range(4)])
    with serving(repeat(lambda _: api_error(403, "no"))) as model:
        done = run_batch(place, out, tasks, "--jobs", "1", "--max-failures", "2", model=model)
        assert (done.status, len(model.requests)) == (1, 2), done.err
    assert Counter(row["status"] for row in report_of(out).values()) == {"failed": 2, "pending": 2}


def test_the_batch_costs_no_more_than_it_may(place: Place, out: Path) -> None:
    rows = [{"id": str(number), "prompt": f"p{number}", "model": "gpt-5.1-codex"} for number in range(4)]
    priced = "[models.'gpt-5.1-codex']\ninput_usd = 1.0\noutput_usd = 1.0\n"
    answer = [say("done"), {"type": "response.completed", "response": {"id": "r", "usage": tokens(400_000, 0)}}]
    with serving(repeat(lambda _: answer)) as model:
        place.use_model(model.base_url)
        place.configure((place.codex_home / "config.toml").read_text() + priced)
        done = run_batch(place, out, write_tasks(place, rows), "--jobs", "1", "--max-usd", "1.0")
    spent = sum(float(row["cost_usd"] or 0) for row in report_of(out).values())
    assert done.status == 75, done.err
    assert 0 < spent <= 1.3
    assert "`--max-usd` is used up" in done.err


def test_the_judge_decides_and_the_branch_is_left_without_a_push(place: Place, out: Path) -> None:
    hook = place.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch RAN\n")
    hook.chmod(0o755)
    rows = [{"id": name, "prompt": name, "repo": str(place.repo)} for name in ("good", "bad")]

    def answer(request: Request) -> Stream:
        name = request.texts("user")[-1]
        if any(entry["type"] == "function_call_output" for entry in request.input):
            return [say("done")]
        return [call("c1", "exec_command", {"cmd": f"echo {name} > made.txt"})]

    with serving(repeat(answer)) as model:
        arguments = (
            "-s",
            "workspace-write",
            "--judge",
            "touch judged && grep -q good made.txt",
            "--branch",
            "b/{id}",
            "--commit",
        )
        done = run_batch(place, out, write_tasks(place, rows), *arguments, model=model)
    report = report_of(out)
    assert {name: (row["status"], row["verdict"]) for name, row in report.items()} == {
        "good": ("ok", "pass"),
        "bad": ("ok", "fail"),
    }, done.err
    assert done.status == 1
    made = git(place, "show", "b/good:made.txt")
    assert (made, git(place, "log", "--format=%s", "-1", "b/bad")) == ("good\n", "bad: bad\n")
    assert git(place, "show", "--format=", "--name-only", "b/good") == "made.txt\n"
    assert git(place, "status", "--short") == ""
    assert not list(out.rglob("RAN"))
    assert not (place.repo / "RAN").exists()


def test_a_judge_that_hangs_is_stopped_and_has_failed(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}])
    judge = "trap '' TERM INT HUP; echo on; exec sleep 1000"
    with serving(repeat(answering)) as model:
        done = run_batch(place, out, tasks, "--judge", judge, "--judge-seconds", "1.5", model=model)
    assert (done.status, report_of(out)["a"]["verdict"]) == (1, "fail"), done.err
    assert json.loads((out / "a/task.json").read_text())["judge_status"] == 124
    assert (out / "a/judge.log").read_text() == "on\nstopped after 1.5 s\n"


def writing(request: Request) -> Stream:
    """A model that writes a file, named by the prompt."""
    if any(entry["type"] == "function_call_output" for entry in request.input):
        return [say("done")]
    return [call("c1", "exec_command", {"cmd": f"echo made > {prompt_of(request)}"})]


@pytest.mark.parametrize("case", ["checked out", "in a worktree", "with other commits", "below it"])
def test_a_branch_that_is_somebodys_is_left_alone_and_the_task_costs_nothing(
    place: Place, out: Path, case: str
) -> None:
    branch = {"checked out": git(place, "branch", "--show-current").strip(), "below it": "b"}.get(case, "theirs")
    if case == "in a worktree":
        git(place, "worktree", "add", "-q", "-b", "theirs", str(out.parent / "wt"))
    elif case != "checked out":
        name = "b/c" if case == "below it" else "theirs"
        git(place, "branch", name, git(place, *IDENTITY, "commit-tree", "-m", "x", "-p", "HEAD", "HEAD^{tree}").strip())
    before = git(place, "for-each-ref")
    rows = [{"id": "a", "prompt": "file", "repo": str(place.repo)}]
    arguments = (write_tasks(place, rows), "-s", "workspace-write", "--commit", "--branch")
    with serving(repeat(writing)) as model:
        done = run_batch(place, out, *arguments, branch, model=model)
        assert len(model.requests) == 0
        reported = report_of(out)["a"]
        assert (done.status, reported["code"], f"`{branch}`" in reported["message"]) == (1, "commit", True)
        assert "of unknown price" not in done.err
        assert (git(place, "for-each-ref"), git(place, "status", "--short")) == (before, "")
        # The same command with a branch that is free goes on, and again with the branch that it has left.
        assert run_batch(place, out, *arguments, "free").status == 0
        assert run_batch(place, out.parent / "other", *arguments, "free").status == 0
    assert git(place, "log", "--format=%s", "-2", "free").splitlines()[0] == "a: file"
    assert git(place, "rev-list", "--count", "free", "--not", "HEAD") == "1\n"


def test_a_bare_repository_is_cloned(place: Place, out: Path) -> None:
    bare, empty = out.parent / "bare", out.parent / "empty"
    git(place, "clone", "-q", "--bare", str(place.repo), str(bare))
    git(place, "init", "-q", "--bare", str(empty))
    rows = [{"id": "a", "prompt": "file", "repo": str(bare)}, {"id": "b", "prompt": "file", "repo": str(empty)}]
    arguments = ("-s", "workspace-write", "--branch", "made", "--commit")
    with serving(repeat(writing)) as model:
        run_batch(place, out, write_tasks(place, rows), *arguments, model=model)
    assert {name: (row["status"], row["message"]) for name, row in report_of(out).items()} == {
        "a": ("ok", ""),
        "b": ("failed", "the repository has no commit"),
    }
    assert sorted(path.name for path in (out / "a/work").iterdir()) == [".git", "README.md", "file"]
    assert git(place, "--git-dir", str(bare), "show", "made:file") == "made\n"


def test_a_directory_that_a_commit_does_not_have_fails_each_time(place: Place, out: Path) -> None:
    before = git(place, "rev-parse", "HEAD").strip()
    place.write("inner/file", "x")
    git(place, "add", "-A")
    git(place, *IDENTITY, "commit", "-qm", "inner")
    tasks = write_tasks(place, [{"id": "a", "prompt": "x", "repo": str(place.repo / "inner"), "ref": before}])
    with serving() as model:
        for _ in range(2):
            done = run_batch(place, out, tasks, model=model)
            assert (done.status, report_of(out)["a"]["code"]) == (1, "workspace")
            assert "of unknown price" not in done.err


def test_a_batch_loads_no_module_of_the_directory_it_starts_in(place: Place, out: Path) -> None:
    # Python reads the variable, so that nothing starts warm.
    place = place.with_env(PYTHONNOUSERSITE="1")
    canary = place.repo.parent / "canary"
    for name in ("multiprocessing/__init__.py", "socket.py", "selectors.py", "codex_py/__init__.py", "msgspec.py"):
        place.write(name, f"open({str(canary)!r}, 'a').write({name!r})\n")
    rows = [{"id": "a", "prompt": "first"}, {"id": "b", "prompt": "second", "repo": str(place.repo)}]
    with serving(repeat(answering)) as model:
        done = run_batch(place, out, write_tasks(place, rows), model=model)
    assert (done.status, canary.exists()) == (0, False), done.err
    assert "Error" not in done.err


@pytest.mark.parametrize("is_partial", [False, True])
def test_a_batch_of_a_hostile_repository_runs_nothing_that_it_names(place: Place, out: Path, is_partial: bool) -> None:
    hostile = hostile_repository(place, is_partial=is_partial)
    rows = [{"id": "a", "prompt": "go", "repo": str(place.repo)}]
    # What a command leaves in the workspace names the same programs.
    script = f"cat {place.repo}/.git/config >> .git/config; cp -r {place.repo}/sub other; echo x > a; echo x > new"

    def answer(request: Request) -> Stream:
        if any(entry["type"] == "function_call_output" for entry in request.input):
            return [say("done")]
        return [call("c1", "exec_command", {"cmd": script, "login": False})]

    with serving(repeat(answer)) as model:
        arguments = ("-s", "workspace-write", "--judge", "true", "--branch", "b/{id}", "--commit")
        done = run_batch(place, out, write_tasks(place, rows), *arguments, model=model)
    assert hostile.ran() == [], done.err
    if not is_partial:
        assert done.status == 0, done.err + done.out


def test_rows_of_swe_bench_write_predictions(place: Place, out: Path) -> None:
    base = git(place, "rev-parse", "HEAD").strip()
    row = {
        "instance_id": "demo__demo-1",
        "repo": str(place.repo),
        "base_commit": base,
        "problem_statement": "fix {it}",
        "test_patch": "x",
        "version": "1.0",
    }

    def answer(request: Request) -> Stream:
        if any(entry["type"] == "function_call_output" for entry in request.input):
            return [say("done")]
        return [call("c1", "exec_command", {"cmd": "echo fixed > fix.txt"})]

    with serving(repeat(answer)) as model:
        done = run_batch(place, out, write_tasks(place, [row]), "-s", "workspace-write", model=model)
        assert prompt_of(model.requests[0]) == "fix {it}"
    assert done.status == 0, done.err
    [prediction] = map(json.loads, (out / "predictions.jsonl").read_text().splitlines())
    assert sorted(prediction) == ["instance_id", "model_name_or_path", "model_patch"]
    assert prediction["instance_id"] == "demo__demo-1"
    assert "+fixed" in prediction["model_patch"]


def test_a_terminal_shows_what_each_task_does_now(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": "quick", "prompt": "quick"}, {"id": "slow", "prompt": "slow"}])
    release = threading.Event()

    def answer(request: Request) -> Any:
        return [say("looking into it"), hang(release)] if prompt_of(request) == "slow" else answering(request)

    with serving(repeat(answer)) as model:
        place.use_model(model.base_url)
        with Terminal(place, "batch", tasks, "--out", str(out), width=110) as terminal:
            terminal.wait_for(lambda it: "1 of 2 done · 1 running" in it.text and "looking into it" in it.text)
            release.set()
            assert terminal.wait_for_end() == 0
            assert "2 of 2 tasks done" in terminal.whole


def test_one_batch_at_a_time_has_the_output(place: Place, out: Path) -> None:
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}])
    release = threading.Event()
    with serving([hang(release), say("done")]) as model:
        place.use_model(model.base_url)
        with start(place, "batch", tasks, "--out", out) as running:
            model.wait_for(1)
            second = run_batch(place, out, tasks)
            release.set()
            assert running.wait().status == 0
    assert (second.status, second.err) == (
        1,
        f"error: another batch is at work in `{out}`; wait for it, or choose another `--out`\n",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "error: no tasks; name a JSONL or CSV file, or `--repos FILE --prompt PROMPT`"),
        (["nowhere.jsonl"], "error: cannot read `nowhere.jsonl`: no such file or directory"),
        (["--repos", "r"], "error: `--repos` needs `--prompt`"),
        (["t", "--branch", "b"], "error: `--branch NAME` and `--commit` go together"),
        (["t", "--branch", "a..b", "--commit"], "error: `a..b` is not a name of a branch"),
        (["t", "--out", ""], "error: `--out` is empty; name a directory"),
        (["t", "--judge-seconds", "1"], "error: `--judge-seconds` goes with `--judge`"),
        (["t", "--jobs", "0"], "error: `--jobs` needs a whole number above 0, not `0`; see `codex-py batch --help`"),
        (["t", "--retry", "sometimes"], "error: `sometimes` is no code of a failure; "),
        (["t", "--cd", "/"], "error: `--cd` does not go with `batch`: each task has a directory of its own"),
    ],
)
def test_a_wrong_command_line_is_one_line(place: Place, out: Path, arguments: list[str], message: str) -> None:
    done = run_batch(place, out, *arguments)
    assert (done.status, done.err.count("\n"), done.out) == (2, 1, "")
    assert done.err.startswith(message)
    assert not out.exists()


def test_wrong_rows_are_named_and_nothing_runs(place: Place, out: Path) -> None:
    rows = [{"id": "../x", "prompt": "p"}, {"id": "a"}, {"id": "b", "prompt": "p", "sandbox": "none"}]
    done = run_batch(place, out, write_tasks(place, rows))
    assert (done.status, len(done.err.splitlines())) == (2, 3)
    assert ["row 1" in done.err, "row 2" in done.err, "row 3" in done.err] == [True] * 3
    assert not out.exists()


def test_a_directory_with_other_files_is_left_alone(place: Place, out: Path) -> None:
    out.mkdir()
    (out / "precious").write_text("mine")
    done = run_batch(place, out, write_tasks(place, [{"id": "a", "prompt": "p"}]))
    assert (done.status, "`precious` among them" in done.err) == (2, True)


@pytest.mark.skipif(find_spec("ray") is not None, reason="Ray is installed")
def test_the_engine_of_a_cluster_says_what_it_needs(place: Place, out: Path) -> None:
    done = run_batch(place, out, write_tasks(place, [{"id": "a", "prompt": "p"}]), "--engine", "ray")
    assert (done.status, done.err) == (1, "error: `--engine ray` needs Ray; install `codex-py[ray]`\n")


def recipe(language: str, word: str) -> str:
    """The block of the guide that has this word."""
    guide = (Path(__file__).parents[2] / "docs/guides/fleet.md").read_text()
    return next(block for block in re.findall(rf"```{language}\n(.*?)```", guide, re.DOTALL) if word in block)


def test_the_recipes_for_schedulers_run_a_task(place: Place, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "prompts.txt").write_text("first\nsecond\n")
    (work / "repo").symlink_to(place.repo)
    pod = yaml.safe_load(recipe("yaml", "Indexed"))["spec"]["template"]["spec"]
    [container] = pod["containers"]
    [text] = container["args"]
    text = text.replace("/work/", f"{work}/").replace("/repo", str(place.repo)).replace("/tmp/prompt", f"{work}/prompt")
    with serving(repeat(answering)) as model:
        place.use_model(model.base_url)
        for command, variable, number in (
            ([*container["command"], text], "JOB_COMPLETION_INDEX", "0"),
            (["sh", "-c", recipe("sh", "SBATCH")], "SLURM_ARRAY_TASK_ID", "2"),
        ):
            ended = subprocess.run(
                command, cwd=work, env={**place.env, variable: number}, capture_output=True, text=True
            )
            assert ended.returncode == 0, ended.stderr
            result = json.loads((work / f"out/{number}/result.json").read_text())
            assert result["answer"] == {"0": "answer to first\n", "2": "answer to second\n"}[number]


@pytest.mark.skipif(find_spec("fsspec") is None, reason="fsspec is not installed")
def test_results_are_copied_to_storage(place: Place, out: Path) -> None:
    storage = place.home.parent / "storage"
    tasks = write_tasks(place, [{"id": "a", "prompt": "p"}])
    with serving(repeat(answering)) as model:
        assert run_batch(place, out, tasks, "--upload", f"file://{storage}", model=model).status == 0
    for name in ("a/result.json", "a/changes.patch", "a/transcript.md", "report.csv", "report.html"):
        assert (storage / name).read_bytes() == (out / name).read_bytes()
    wrong = run_batch(place, out, tasks, "--upload", "nowhere://x")
    assert (wrong.status, wrong.err.count("\n")) == (1, 1)


def git(place: Place, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=place.repo, env=place.env, check=True, capture_output=True, text=True
    ).stdout

"""`exec --artifacts DIR`: the files of a run, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, api_error, call, completed, fake_model, hang, say, tokens
from tests.support.home import Place
from tests.support.process import Running, is_running, run, start

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'
NAMES = ["changes.patch", "events.jsonl", "result.json", "transcript.md"]


def result_of(directory: Path) -> dict[str, Any]:
    return json.loads((directory / "result.json").read_bytes())


def git(repo: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(["git", *identity, *arguments], cwd=repo, input=stdin, check=True, capture_output=True).stdout


def commit_files(place: Place, **files: bytes) -> None:
    for name, content in files.items():
        place.write(name, content)
    git(place.repo, "add", "-A")
    git(place.repo, "commit", "-qm", "start")


def tree_of(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a directory, with whether it may be run, and its content."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in sorted(directory.rglob("*")):
        if ".git" in path.relative_to(directory).parts or (path.is_dir() and not path.is_symlink()):
            continue
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        found[str(path.relative_to(directory))] = (path.lstat().st_mode & 0o100, content)
    return found


def test_a_run_leaves_its_result_its_events_and_its_transcript(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "deep/out"
    with fake_model(place, [say("all good"), completed(tokens(1000, 50))]):
        ended = run(place, "exec", "--json", "--artifacts", out, "check it")
    assert (ended.status, sorted(path.name for path in out.iterdir())) == (0, NAMES)
    result = result_of(out)
    assert (result["status"], result["code"], result["exit_status"]) == ("ok", None, 0)
    assert (result["answer"], result["structured_output"], result["files_changed"]) == ("all good", None, [])
    assert (result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (1000, 50)
    assert result["cost_usd"] == result["usage"]["cost_usd"]
    assert result["session_id"] == ended.events[0]["thread_id"]
    assert result["durations"]["total_seconds"] >= result["durations"]["turn_seconds"] >= 0
    assert set(result["versions"]) == {"codex_py", "python", "system"}
    assert (out / "events.jsonl").read_bytes() == ended.stdout
    assert (out / "changes.patch").read_bytes() == b""
    transcript = (out / "transcript.md").read_text()
    assert "> check it" in transcript
    assert "all good" in transcript


def test_the_patch_makes_the_same_files_of_the_state_before(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    commit_files(place, text=b"one\ntwo\n", gone=b"old\n", binary=bytes(range(256)) * 20, **{"sub/dir/file": b"x\n"})
    place.write("dirty", b"mine before\n")
    place.write("text", b"one, changed before\ntwo\n")
    before = tmp_path / "before"
    subprocess.run(["cp", "-a", place.repo, before], check=True)
    commands = (
        "printf 'three\\n' >> text; rm gone; head -c 5000 /dev/urandom > binary; chmod +x sub/dir/file; "
        "ln -s text link; mkdir -p new/ünï && printf 'no newline' > 'new/ünï/with space'; head -c 300 /dev/urandom > "
        '\'new/q"uote\'; printf "later\\n" >> dirty; git add -A; git -c user.name=t -c user.email=t@t commit -qm x'
    )
    with fake_model(place, [call("c1", "exec_command", {"cmd": commands})], [say("done")], top=FULL_ACCESS):
        ended = run(place, "exec", "--artifacts", out, "change things")
    assert ended.status == 0
    patch = (out / "changes.patch").read_bytes()
    assert b"changed before" not in [line[1:] for line in patch.splitlines() if line[:1] == b"+"]
    git(before, "apply", "--check", "-", stdin=patch)
    git(before, "apply", "-", stdin=patch)
    assert tree_of(before) == tree_of(place.repo)
    files = {entry["path"]: entry["kind"] for entry in result_of(out)["files_changed"]}
    assert files == {
        "text": "update",
        "gone": "delete",
        "binary": "update",
        "sub/dir/file": "update",
        "link": "add",
        "new/ünï/with space": "add",
        'new/q"uote': "add",
        "dirty": "update",
    }
    assert result_of(out)["files_left_out"] == []


def test_the_patch_applies_in_a_fresh_clone_whatever_became_of_the_files(place: Place, tmp_path: Path) -> None:
    commit_files(
        place,
        **{"was empty": b"", "run me": b"#!/bin/sh\n", "old name": b"x\n" * 50, "new\nline": b"1\n", "tab\tname": b"1"},
        **{"file": b"1\n", "dir/in": b"1\n", "plain": b"1\n", ".gitignore": b"*.o\n", "crlf": b"a\r\nb\r\n"},
    )
    git(place.repo, "update-index", "--chmod=+x", "run me")
    git(place.repo, "commit", "-qm", "mode")
    git(place.repo, "checkout", "-q", "--", ".")
    fresh = tmp_path / "fresh"
    git(tmp_path, "clone", "-q", str(place.repo), str(fresh))
    commands = r"""
        rm 'was empty'; : > empty; : > run; chmod +x run; chmod -x 'run me'; git mv 'old name' 'other name'
        printf '2\n' >> "$(printf 'new\nline')"; printf 2 >> "$(printf 'tab\tname')"; printf 2 > "$(printf 'a\nb')"
        rm file; mkdir file; echo 2 > file/in; rm -r dir; echo 2 > dir; rm plain; ln -s nowhere plain
        printf 'a\r\nc\r\n' > crlf; echo 2 > "$(printf 'lat\351n')"; echo 2 > ignored.o
        git init -q deep/nested; echo 2 > deep/nested/file
    """
    with fake_model(place, [call("c1", "exec_command", {"cmd": commands})], [say("done")], top=FULL_ACCESS):
        assert run(place, "exec", "--artifacts", tmp_path / "out", "change things").status == 0
    git(fresh, "apply", "-", stdin=(tmp_path / "out/changes.patch").read_bytes())
    changed = tree_of(place.repo)
    assert (changed.pop("ignored.o"), changed.pop("deep/nested/file")) == ((0, b"2\n"), (0, b"2\n"))
    assert tree_of(fresh) == changed
    assert result_of(tmp_path / "out")["files_left_out"] == ["deep/nested"]


@pytest.mark.parametrize("directory", ["out", "."])
def test_the_files_of_the_run_are_no_part_of_the_patch(directory: str, place: Place) -> None:
    commit_files(place, text=b"one\n")
    with fake_model(place, [call("c1", "exec_command", {"cmd": "echo two >> text"})], [say("done")], top=FULL_ACCESS):
        run(place, "exec", "--artifacts", directory, "change it")
    assert [entry["path"] for entry in result_of(place.repo / directory)["files_changed"]] == ["text"]


def test_outside_of_git_there_is_a_patch_too(place: Place, tmp_path: Path) -> None:
    work, before = tmp_path / "work", tmp_path / "before"
    for directory in (work, before):
        directory.mkdir()
        (directory / "a").write_text("one\n")
    with FakeResponses([call("c1", "exec_command", {"cmd": "echo two >> a; echo b > b"})], [say("done")]) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        arguments = ("--skip-git-repo-check", "-C", work, "--ephemeral", "--artifacts", tmp_path / "out")
        assert run(place, "exec", *arguments, "change it").status == 0
    git(before, "apply", "-", stdin=(tmp_path / "out/changes.patch").read_bytes())
    assert tree_of(before) == tree_of(work)
    assert "> change it" in (tmp_path / "out/transcript.md").read_text()
    assert list((place.codex_home / "exec-runs").iterdir()) == []


def test_a_failed_run_says_why(place: Place, tmp_path: Path) -> None:
    with fake_model(
        place,
        [call("c1", "exec_command", {"cmd": "echo 1 > made"})],
        api_error(400, "no such parameter"),
        top=FULL_ACCESS,
    ):
        ended = run(place, "exec", "--artifacts", tmp_path, "go")
    result = result_of(tmp_path)
    assert (ended.status, result["status"], result["code"], result["exit_status"]) == (1, "failed", "internal", 1)
    assert "no such parameter" in result["message"]
    assert (result["answer"], [entry["path"] for entry in result["files_changed"]]) == (None, ["made"])
    assert json.loads((tmp_path / "events.jsonl").read_text().splitlines()[-1])["error"]["code"] == "internal"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_leaves_its_files(number: signal.Signals, status: int, place: Place, tmp_path: Path) -> None:
    with FakeResponses([call("c1", "exec_command", {"cmd": "echo 1 > made"})], [hang(threading.Event())]) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        with start(place, "exec", "--artifacts", tmp_path, "go") as running:
            model.wait_for(2)
            running.send_signal(number)
            ended = running.wait()
    result = result_of(tmp_path)
    assert (ended.status, result["status"], result["code"]) == (status, "failed", "interrupted")
    assert [entry["path"] for entry in result["files_changed"]] == ["made"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in NAMES) == NAMES


def test_a_run_that_cannot_begin_leaves_a_result(place: Place, tmp_path: Path) -> None:
    out = tmp_path / "out"
    place.configure("model = 3\n")
    ended = run(place, "exec", "--json", "--artifacts", out, "go")
    assert (ended.status, result_of(out)["code"], result_of(out)["exit_status"]) == (2, "config", 2)
    assert ended.events[-1]["error"]["code"] == "config"
    assert (out / "events.jsonl").read_text() == ended.out
    place.configure("")
    ended = run(place, "exec", "--artifacts", out, "go")
    assert (result_of(out)["code"], result_of(out)["status"]) == ("auth", "failed")
    assert sorted(path.name for path in out.iterdir()) == NAMES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--artifacts", "out", "--zzz", "go"], "unknown option `--zzz`"),
        (["--zzz", "--artifacts=out", "--session-id", "a", "go"], "unknown option `--zzz`"),
        (["go", "--artifacts", "other", "--artifacts", "out", "-m"], "`-m` needs a value"),
        (["--artifacts", "out", "--sandbox", "none", "go"], "`none` is not a value of `--sandbox`"),
        (["--artifacts", "out", "--max-usd", "much", "go"], "`--max-usd`"),
        (["--artifacts", "out", "--again", "go"], "`--again` goes with `--session-id`"),
        (["--artifacts", "out", "go", "on"], "more than one prompt: `on`"),
        (["--artifacts", "out", "--cwd-map", "a", "go"], "`--cwd-map`"),
    ],
)
def test_a_wrong_command_line_leaves_a_result(place: Place, arguments: list[str], message: str) -> None:
    ended = run(place, "exec", "--json", *arguments)
    result = result_of(place.repo / "out")
    assert (ended.status, result["status"], result["code"], result["exit_status"]) == (2, "failed", "config", 2)
    assert message in result["message"]
    assert ended.err.startswith(f"error: {result['message'][:20]}")
    assert ended.events[-1]["error"] == {"message": result["message"], "code": "config"}
    assert (place.repo / "out/events.jsonl").read_text() == ended.out
    assert not (place.repo / "other").exists()


@pytest.mark.parametrize(
    "arguments", [["--artifacts"], ["--artifacts", "--zzz"], ["--zzz", "--", "--artifacts", "out"]]
)
def test_a_wrong_command_line_without_a_directory_makes_none(place: Place, arguments: list[str]) -> None:
    before = sorted(place.repo.iterdir())
    assert run(place, "exec", *arguments).status == 2
    assert sorted(place.repo.iterdir()) == before


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("arguments", [["--artifacts", "out"], ["--artifacts=out", "--session-id", "a", "--zzz"]])
def test_a_signal_while_the_program_is_loaded_leaves_a_result(
    place: Place, number: signal.Signals, status: int, arguments: list[str]
) -> None:
    place.use_model("http://127.0.0.1:9")
    early = f"import os, sys, codex_py.cli.entry as e; os.kill(os.getpid(), {int(number)}); e.main()"
    with Running([sys.executable, "-c", early, "exec", *arguments, "go"], env=place.env, cwd=place.repo) as running:
        ended = running.wait()
    result = result_of(place.repo / "out")
    assert (ended.status, result["status"], result["code"]) == (status, "failed", "interrupted")
    assert result["exit_status"] == status
    assert (place.repo / "out/transcript.md").exists()
    assert place.rollouts() == []


def test_a_directory_that_cannot_be_is_refused(place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    place.write("file", "x")
    assert run(place, "exec", "--artifacts", "", "go").err == "error: `--artifacts` is empty; name a directory\n"
    for path in ("file", "file/below"):
        ended = run(place, "exec", "--artifacts", path, "go")
        assert (ended.status, ended.out) == (2, "")
        assert f"cannot write to `{path}`" in ended.err


def test_the_patch_has_what_a_killed_run_has_changed_too(place: Place, tmp_path: Path) -> None:
    first = [call("c1", "exec_command", {"cmd": "echo 1 > one"})]
    second = [call("c2", "exec_command", {"cmd": "echo 2 > two"})]
    command = ("exec", "--session-id", "job", "--artifacts", tmp_path / "out", "do it")
    with fake_model(place, first, [hang(threading.Event())], second, [say("done")], top=FULL_ACCESS) as model:
        with start(place, *command) as running:
            model.wait_for(2)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        assert not (tmp_path / "out/result.json").exists()
        assert run(place, *command).status == 0
    assert [entry["path"] for entry in result_of(tmp_path / "out")["files_changed"]] == ["one", "two"]


def test_a_stored_answer_comes_with_its_files_in_another_directory(place: Place, tmp_path: Path) -> None:
    with fake_model(place, [call("c1", "exec_command", {"cmd": "echo 1 > one"})], [say("done")], top=FULL_ACCESS):
        run(place, "exec", "--session-id", "job", "--artifacts", tmp_path / "a", "do it")
        written = {name: (tmp_path / "a" / name).stat().st_mtime_ns for name in NAMES}
        run(place, "exec", "--session-id", "job", "--artifacts", tmp_path / "a", "do it")
        assert {name: (tmp_path / "a" / name).stat().st_mtime_ns for name in NAMES} == written
        run(place, "exec", "--session-id", "job", "--artifacts", tmp_path / "b", "do it")
    first, second = result_of(tmp_path / "a"), result_of(tmp_path / "b")
    assert second == {**first, "is_stored": True}
    assert (tmp_path / "b/changes.patch").read_bytes() == (tmp_path / "a/changes.patch").read_bytes() != b""
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == NAMES


def test_a_structured_answer_is_in_the_result_as_json(place: Place, tmp_path: Path) -> None:
    schema = place.write("schema.json", json.dumps({"type": "object", "required": ["n"]}))
    with fake_model(place, [say('{"n": 1}')]):
        run(place, "exec", "--output-schema", schema, "--artifacts", tmp_path / "out", "count")
    assert result_of(tmp_path / "out")["structured_output"] == {"n": 1}


def test_a_run_that_does_not_end_in_time_leaves_its_files_all_the_same(place: Place, tmp_path: Path) -> None:
    # The hook at the end of the session waits for longer than a pod is given.
    hook = {"type": "command", "command": f"echo $$ >{tmp_path}/pid; exec sleep 1000"}
    hooks = json.dumps({"hooks": {"SessionEnd": [{"hooks": [hook]}]}})
    place.use_model("http://127.0.0.1:9")
    with FakeResponses([call("c1", "exec_command", {"cmd": "trap '' TERM INT HUP; echo on; sleep 1000"})]) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        (place.codex_home / "hooks.json").write_text(hooks)
        with start(place, "exec", "--artifacts", tmp_path, "go") as running:
            model.wait_for(1)
            running.wait_until(lambda seen: b"sleep 1000" in seen.stderr)
            running.send_signal(signal.SIGTERM)
            ended = running.wait(timeout=20)
    result = result_of(tmp_path)
    assert (ended.status, result["code"]) == (143, "interrupted")
    [rollout] = place.rollouts()
    assert b'"turn_aborted"' in rollout.read_bytes()
    assert not is_running(int((tmp_path / "pid").read_text()))


@pytest.mark.parametrize("planted", ["pipe", "link", "directory"])
def test_a_repeated_run_reads_no_result_that_is_no_file_of_its_own(place: Place, tmp_path: Path, planted: str) -> None:
    out, secret = tmp_path / "out", tmp_path / "secret.json"
    arguments = ("exec", "--session-id", "task", "--artifacts", str(out), "check it")
    with fake_model(place, [say("all good")]):
        first = run(place, *arguments)
        task = result_of(out)["task"]
        secret.write_text(json.dumps({"status": "ok", "task": task}))
        (out / "result.json").unlink()
        match planted:
            case "pipe":
                os.mkfifo(out / "result.json")
            case "link":
                (out / "result.json").symlink_to(secret)
            case _:
                (out / "result.json/inner").mkdir(parents=True)
        again = run(place, *arguments)
    assert (first.status, again.out) == (0, "all good\n")
    if planted != "directory":
        assert (again.status, result_of(out)["answer"], (out / "result.json").is_symlink()) == (0, "all good", False)
    assert json.loads(secret.read_text()) == {"status": "ok", "task": task}

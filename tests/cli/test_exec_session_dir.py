"""`exec --session-dir DIR` and `--cwd-map OLD=NEW`: sessions that are kept elsewhere, copied, and resumed elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.fake_responses import FakeResponses, call, fake_model, hang, say
from tests.support.home import Place
from tests.support.process import run, start

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def test_everything_of_a_session_is_in_its_directory(place: Place, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with FakeResponses([call("c1", "exec_command", {"cmd": "echo 1 > made"})], [say("done")], [say("more")]) as model:
        place.use_model(model.base_url, FULL_ACCESS)
        run(place, "exec", "--session-dir", kept, "--session-id", "job", "do it")
        again = run(place, "exec", "--session-dir", kept, "--session-id", "job", "do it")
        more = run(place, "exec", "resume", "--session-dir", kept, "--last", "more")
    assert (again.out, more.out) == ("done\n", "more\n")
    assert {path.name for path in kept.iterdir()} >= {"sessions", "checkpoints", "exec-runs"}
    assert place.rollouts() == []
    for name in ("checkpoints", "exec-runs", "thread-writer-locks", "session_index.jsonl"):
        assert not (place.codex_home / name).exists(), name


def test_where_the_session_was_is_nowhere_but_in_its_conversation(place: Place, tmp_path: Path) -> None:
    kept, new = tmp_path / "kept", tmp_path / "new"
    command = ("--session-id", "job", "--artifacts")
    with fake_model(place, [call("c1", "exec_command", {"cmd": "echo 1 > made"})], [say("done")], top=FULL_ACCESS):
        run(place, "exec", "--session-dir", kept, *command, tmp_path / "a", "do it")
        names = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file() and holds(path, tmp_path)}
        assert {name.partition("/")[0] for name in names} == {"sessions"}
        shutil.move(place.repo, new)
        run(place, "exec", "--session-dir", kept, *command, tmp_path / "b", "do it", cwd=new)
    result = json.loads((tmp_path / "b/result.json").read_bytes())
    assert (result["is_stored"], result["cwd"]) == (True, str(new))


def holds(path: Path, directory: Path) -> bool:
    return str(directory).encode() in path.read_bytes()


def test_a_copied_directory_goes_on_in_another_place(place: Place, tmp_path: Path) -> None:
    subprocess.run(
        ["git", "commit", "-q", "--allow-empty", "-m", "x"], cwd=place.repo, check=True, env=_identity(place)
    )
    command = ("--session-id", "job", "--artifacts", tmp_path / "out", "do it")
    steps = [[call(f"c{n}", "exec_command", {"cmd": f"echo {n} > file{n}"})] for n in (1, 2)]
    with fake_model(place, steps[0], [hang(threading.Event())], steps[1], [say("done")], top=FULL_ACCESS) as model:
        with start(place, "exec", "--session-dir", tmp_path / "a", *command) as running:
            model.wait_for(2)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        new = tmp_path / "new"
        shutil.move(place.repo, new)
        shutil.move(tmp_path / "a", tmp_path / "b")
        options = ("--session-dir", tmp_path / "b", "--cwd-map", f"{place.repo}={new}")
        ended = run(place, "exec", *options, *command, cwd=new)
    assert (ended.status, ended.out) == (0, "done\n")
    assert (new / "file2").read_text() == "2\n"
    [text] = [text for text in model.requests[2].texts("user") if text.startswith("The run of this task was stopped")]
    assert f"What was in `{place.repo}` is in `{new}` now." in text
    result = json.loads((tmp_path / "out/result.json").read_bytes())
    assert [entry["path"] for entry in result["files_changed"]] == ["file1", "file2"]


def test_the_newest_session_is_found_by_its_old_directory(place: Place, tmp_path: Path) -> None:
    with fake_model(place, [say("one")], [say("two")], [say("three")]) as model:
        run(place, "exec", "--session-dir", tmp_path / "a", "first")
        new = tmp_path / "new"
        shutil.move(place.repo, new)
        options = ("--session-dir", tmp_path / "a", "--cwd-map", f"{place.repo}={new}", "--last")
        assert run(place, "exec", "resume", *options, "second", cwd=new).out == "two\n"
        assert run(place, "exec", "resume", *options, "third", cwd=new).out == "three\n"
    assert model.requests[2].texts("assistant") == ["one", "two"]


def test_commands_neither_read_nor_write_the_session_directory(place: Place, tmp_path: Path) -> None:
    # Outside of what the sandbox makes writable.
    with TemporaryDirectory(dir="/var/tmp") as kept:
        command = f"cat {kept}/sessions/*/*/*/*; ls {kept}; echo x > {kept}/x"
        with fake_model(place, [call("c1", "exec_command", {"cmd": command})], [say("done")]) as model:
            ended = run(place, "exec", "-s", "workspace-write", "--session-dir", kept, "look at the secret sauce")
        assert (ended.status, "sauce" in model.requests[1].output_of("c1")) == (0, False)
        assert not (Path(kept) / "x").exists()


def test_a_directory_that_commands_may_write_is_refused(place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    assert run(place, "exec", "--session-dir", "", "go").err == "error: `--session-dir` is empty; name a directory\n"
    ended = run(place, "exec", "-s", "workspace-write", "--session-dir", "inside", "go")
    assert (ended.status, ended.out) == (2, "")
    assert "cannot keep sessions in `inside`: commands may write to" in ended.err
    assert not (place.repo / "inside").exists()


def test_a_directory_that_commands_need_is_refused(place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    before = sorted(entry.name for entry in Path("/").iterdir())
    for chosen, needed in (("/", place.repo), (".", place.repo), ("..", place.repo), (str(place.home), place.home)):
        ended = run(place, "exec", "-s", "danger-full-access", "--session-dir", chosen, "go")
        assert (ended.status, ended.out) == (2, "")
        assert f"cannot keep sessions in `{chosen}`: commands could not read `{needed}`" in ended.err
    assert run(place, "exec", "--session-dir", "/etc", "go").status == 2
    assert sorted(entry.name for entry in Path("/").iterdir()) == before
    assert not (place.repo / "sessions").exists()


@pytest.mark.parametrize("argument", ["", "x", "=", "a=b", "/old=", "/old=/not/there", "relative=/tmp"])
def test_a_wrong_map_is_refused(argument: str, place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    ended = run(place, "exec", "--session-id", "a", f"--cwd-map={argument}", "go")
    assert (ended.status, ended.out) == (2, "")
    assert "--cwd-map" in ended.err


def _identity(place: Place) -> dict[str, str]:
    names = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL")
    return {**place.env, **dict.fromkeys(names, "t")}

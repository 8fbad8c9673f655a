"""Checkpoints of a working tree that is so large that commands do not wait until all of it is on record."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fake_responses import FakeResponses, Request, call, custom_call, hang, say
from tests.support.home import Place
from tests.support.process import Finished, run, until
from tests.unit.patch_cases import update

WRITES: Final = ("-s", "workspace-write")
LINE: Final = "/undo does not cover what commands change in"

# A git whose `status` waits for a reader at the other end of a pipe, as long as there is one.
_SLOW_GIT: Final = """#!/bin/sh
for word in "$@"; do
    [ "$word" = status ] && [ -p {pipe} ] && read -r _ < {pipe}
done
exec {git} "$@"
"""


class SlowGit:
    """`git status` of codex-py waits until `release`."""

    def __init__(self, place: Place, directory: Path) -> None:
        self._pipe = directory / "pipe"
        script = directory / "git"
        script.write_text(_SLOW_GIT.format(pipe=self._pipe, git=shutil.which("git")))
        script.chmod(0o755)
        self.hold()
        self.place = place.with_env(PATH=f"{directory}:{place.env['PATH']}")

    def hold(self) -> None:
        """Let the next ones wait."""
        os.mkfifo(self._pipe)

    def wait(self) -> int:
        """Return when a status is asked for, with the pipe that it waits for."""
        return until(lambda: os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))

    def release(self) -> None:
        descriptor = self.wait()
        self._pipe.unlink()
        os.close(descriptor)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with an index of more than 4 MiB."""
    top = tmp_path_factory.mktemp("many")
    directory = top.joinpath(*("d" * 250 for _ in range(14)))
    directory.mkdir(parents=True)
    for number in range(1300):
        (directory / f"{number}").touch()
    for name in ("a.txt", "b.txt", "c.txt", "gone.txt"):
        (top / name).write_text("one\n")
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=top, check=True)
    return top


@pytest.fixture
def trusted() -> Iterator[Path]:
    """A directory from which programs are taken; the temporary ones are none."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def slow(place: Place, many: Path, trusted: Path) -> SlowGit:
    shutil.rmtree(place.repo)
    subprocess.run(["git", "clone", "-q", many, place.repo], check=True)
    return SlowGit(place, trusted)


def shell(command: str) -> list[Any]:
    return [call("c", "exec_command", {"cmd": command})]


def turn(place: Place, *answers: Any) -> Finished:
    with FakeResponses(*answers, [say("done")]) as model:
        place.use_model(model.base_url)
        ended = run(place, "exec", *WRITES, "go")
    assert ended.status == 0, ended.err
    return ended


def rewind(slow: SlowGit) -> dict[str, Any]:
    place = slow.place.with_env(PATH=os.environ["PATH"])
    thread = place.rollouts()[0].stem[-36:]
    ended = run(place, "sessions", "rewind", thread, "--to", "1", "--json", "--files")
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def begun(place: Place) -> int:
    """How many states of the beginning of a turn are on record."""
    [store] = (place.codex_home / "checkpoints").iterdir()
    return (store / "log.jsonl").read_text().count('"begin"')


def test_a_command_does_not_wait_and_patches_are_covered(slow: SlowGit) -> None:
    place = slow.place
    write = [custom_call("p", "apply_patch", update("a.txt", "-one", "+two"))]

    ended = turn(place, shell("echo two > b.txt; echo new > new.txt"), write)

    assert ended.err.count(LINE) == 1
    assert "`wait_ms`" in ended.err
    done = rewind(slow)
    assert (done["restored"], done["deleted"]) == (["a.txt"], [])
    assert (place.repo / "a.txt").read_text() == "one\n"
    assert (place.repo / "b.txt").read_text() == "two\n"


def test_the_rest_is_recorded_while_the_model_thinks(slow: SlowGit) -> None:
    place = slow.place

    def think(_: Request) -> list[Any]:
        slow.release()
        until(lambda: begun(place) == 2 or None)
        return shell("echo two > c.txt; echo new > later.txt")

    ended = turn(place, shell("echo two > b.txt; rm gone.txt"), think)

    assert ended.err.count(LINE) == 1
    assert "`b.txt` (changed before it was on record)" in ended.err
    done = rewind(slow)
    assert done["restored"] == ["c.txt"]
    assert done["deleted"] == ["later.txt"]
    # git has the file, and nobody knows more of it.
    assert done["brought_back"] == ["gone.txt"]
    assert done["uncovered"] == ["b.txt"]
    assert (place.repo / "b.txt").read_text() == "two\n"


def test_what_the_user_changes_after_such_a_turn_is_a_conflict(slow: SlowGit) -> None:
    place = slow.place

    def think(_: Request) -> list[Any]:
        slow.release()
        until(lambda: begun(place) == 2 or None)
        # The state at the end of the turn is not waited for either.
        slow.hold()
        return shell("echo two > c.txt; echo two > b.txt")

    turn(place, shell("touch first.txt"), think)
    end = (place.repo / "c.txt").stat().st_ctime
    until(lambda: time.time() > end + 2 or None)
    place.write("c.txt", "mine\n")

    done = rewind(slow)
    assert (done["restored"], done["conflicts"]) == (["b.txt"], ["c.txt"])
    assert (place.repo / "c.txt").read_text() == "mine\n"


def test_a_first_checkpoint_begins_with_the_request(place: Place, trusted: Path) -> None:
    slow = SlowGit(place, trusted)
    place.write("a.txt", "one\n")

    def think(_: Request) -> list[Any]:
        slow.release()
        return shell("echo two > a.txt")

    ended = turn(slow.place, think)

    assert LINE not in ended.err
    assert rewind(slow)["restored"] == ["a.txt"]


def test_a_turn_without_calls_waits_for_nothing_and_keeps_nothing(slow: SlowGit) -> None:
    place = slow.place

    def think(_: Request) -> list[Any]:
        os.close(slow.wait())
        return [hang(0), say("no calls")]

    with FakeResponses(think) as model:
        place.use_model(model.base_url)
        ended = run(place, "exec", *WRITES, "go")

    assert (ended.status, ended.out) == (0, "no calls\n")
    assert LINE not in ended.err
    assert not list((place.codex_home / "checkpoints").glob("*"))

"""The user's project looks the same before, while and after a command runs, and after a kill."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Running, run, start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")

KILLS: Final = 20


def git(place: Place, *words: str | Path, cwd: Path) -> None:
    env = {**place.env, "GIT_ALLOW_PROTOCOL": "file"}
    person = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *person, *words], cwd=cwd, env=env, check=True, capture_output=True)


def submodules(place: Place) -> Path:
    """A clone whose submodules are not initialised."""
    top = place.repo.parent
    git(place, "init", "-q", "lib", cwd=top)
    git(place, "commit", "-q", "--allow-empty", "-m", "x", cwd=top / "lib")
    for name in ("one", "deep/two"):
        git(place, "submodule", "--quiet", "add", top / "lib", name, cwd=place.repo)
    git(place, "commit", "-qam", "modules", cwd=place.repo)
    git(place, "clone", "-q", place.repo, "clone", cwd=top)
    return top / "clone"


def no_git(place: Place) -> Path:
    """A directory without git, which is a Python project."""
    directory = place.repo.parent / "plain"
    (directory / "package").mkdir(parents=True)
    (directory / "package" / "__init__.py").write_text("")
    (directory / "pyproject.toml").write_text('[project]\nname = "package"\nversion = "1"\n')
    return directory


def linked(place: Place) -> Path:
    git(place, "worktree", "add", "-q", "../linked", cwd=place.repo)
    return place.repo.parent / "linked"


def bare(place: Place) -> Path:
    git(place, "clone", "-q", "--bare", place.repo, "bare.git", cwd=place.repo.parent)
    shutil.rmtree(place.repo.parent / "bare.git" / "hooks")
    return place.repo.parent / "bare.git"


def package(place: Place) -> Path:
    """A package of a repository that names hooks and included files which are not there."""
    place.write("services/api/setup.py", "")
    git(place, "add", ".", cwd=place.repo)
    git(place, "commit", "-qm", "package", cwd=place.repo)
    git(place, "config", "core.hooksPath", "build/hooks", cwd=place.repo)
    git(place, "config", "include.path", "../config/x", cwd=place.repo)
    return place.repo / "services" / "api"


DIRECTORIES: Final = (submodules, no_git, linked, bare, package)
SEEN: Final = "git status 2>&1; echo $?; ls -A; find . | sort; getfattr -dR . 2>/dev/null; stat -c '%n %Z' ."


def seen(place: Place, directory: Path) -> str:
    """What the user sees in their own terminal."""
    ran = subprocess.run(["/bin/sh", "-c", SEEN], cwd=directory, env=place.env, stdout=subprocess.PIPE, check=True)
    return ran.stdout.decode()


def use_home(place: Place) -> list[str]:
    """The flags of a session whose own files lie beside the directory it works in."""
    return ["-s", "workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true"]


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces", "landlock"])
@pytest.mark.parametrize("make", DIRECTORIES)
def test_the_working_tree_is_the_same_before_while_and_after_a_command(
    place: Place, make: Callable[[Place], Path], backend: str
) -> None:
    directory = make(place)
    before = seen(place, directory)
    script = f"{SEEN}; echo ready; sleep 600"
    argv = ["sandbox", "--backend", backend, *use_home(place), "-C", directory, "--", "/bin/sh", "-c", script]
    with start(place, *map(str, argv)) as running:
        running.wait_until(lambda one: b"ready\n" in one.stdout)
        assert seen(place, directory) == before
        running.send_signal(signal.SIGTERM)
        ended = running.wait()
    assert (ended.status, ended.out) == (128 + signal.SIGTERM, f"{before}ready\n"), ended.err
    assert seen(place, directory) == before


@pytest.mark.parametrize("make", DIRECTORIES)
def test_a_session_leaves_the_working_tree_as_it_was(place: Place, make: Callable[[Place], Path]) -> None:
    directory = make(place)
    before = seen(place, directory)
    calls = [[call(f"c{number}", "exec_command", {"cmd": SEEN, "login": False})] for number in range(2)]
    with fake_model(place, *calls, [say("done")]) as model:
        ended = run(place, "exec", *use_home(place), "--skip-git-repo-check", "-C", str(directory), "go")
    assert (ended.status, ended.err.count("warning")) == (0, 0), ended.err
    for number in range(2):
        assert model.requests[-1].output_of(f"c{number}").partition("Output:\n")[2] == before
    assert seen(place, directory) == before


@pytest.mark.parametrize("make", DIRECTORIES)
def test_a_killed_session_leaves_nothing_in_the_working_tree(place: Place, make: Callable[[Place], Path]) -> None:
    directory = make(place)
    before = seen(place, directory)
    argv = ["sandbox", *use_home(place), "-C", str(directory), "--", "/bin/sh", "-c", "echo ready; sleep 3"]
    moments = random.Random(1)
    for _ in range(KILLS // len(DIRECTORIES)):
        with Running([COMMAND, *argv], env=place.env, cwd=place.repo) as running:
            # At any step of the way to the command.
            steps = moments.randrange(200_000)
            while steps and b"ready" not in running.stdout:
                steps -= 1
            running.send_signal(signal.SIGKILL)
            running.wait()
        assert seen(place, directory) == before

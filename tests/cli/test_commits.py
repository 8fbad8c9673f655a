"""Commits of commands in every state of a repository: which are refused, which succeed, and what stays as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from codex_py.sandbox.git_directories import RUN_BY_GIT
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import Finished, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")

COMMIT: Final = "echo more >> file; git add -A . && git commit -qm more && git log -1 --format=%s"


class State(NamedTuple):
    """A repository: where a session works, and the git directory that a commit there writes."""

    cwd: Path
    git: Path
    extra: tuple[Path, ...] = ()


def git(place: Place, *words: str | Path, cwd: Path | None = None) -> str:
    options = ("-c", "protocol.file.allow=always")
    ran = subprocess.run(
        ["git", *options, *words], cwd=cwd or place.repo, env=place.env, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def plain(place: Place) -> State:
    return State(place.repo, place.repo / ".git")


def linked_worktree(place: Place) -> State:
    git(place, "worktree", "add", "-q", "../linked")
    return State(place.repo.parent / "linked", place.repo / ".git")


def worktree_below(place: Place) -> State:
    git(place, "worktree", "add", "-q", "trees/one")
    return State(place.repo / "trees" / "one", place.repo / ".git")


def worktree_of_bare(place: Place) -> State:
    store = place.repo.parent / "store.git"
    git(place, "clone", "-q", "--bare", ".", store)
    git(place, "config", "user.name", "Tester", cwd=store)
    git(place, "config", "user.email", "tester@example.invalid", cwd=store)
    git(place, "worktree", "add", "-q", "../linked", cwd=store)
    return State(place.repo.parent / "linked", store)


def submodule(place: Place) -> State:
    library = place.repo.parent / "library"
    git(place, "clone", "-q", ".", library)
    git(place, "submodule", "add", "-q", library, "libs/one")
    module = place.repo / "libs" / "one"
    git(place, "config", "user.name", "Tester", cwd=module)
    git(place, "config", "user.email", "tester@example.invalid", cwd=module)
    return State(module, place.repo / ".git" / "modules" / "libs" / "one")


def commit(place: Place, state: State, *options: str | Path, top: str = "", cmd: str = COMMIT) -> tuple[str, Finished]:
    """What the model reads of the command, and the run."""
    narrow = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    with FakeResponses([call("c", "exec_command", {"cmd": cmd, "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, f"{narrow}{top}")
        ended = run(place, "exec", "-s", "workspace-write", "--skip-git-repo-check", "-C", state.cwd, *options, "go")
    assert ended.status == 0, ended.err
    return model.requests[-1].output_of("c"), ended


Builder = Callable[[Place], State]
ADDED: Final[tuple[Builder, ...]] = (plain, linked_worktree, worktree_below, worktree_of_bare)


@pytest.mark.parametrize("build", [*ADDED, submodule])
def test_a_commit_works_where_the_git_directory_is_added(place: Place, build: Builder) -> None:
    state = build(place)
    top = place.repo / ".git" if build is submodule else state.git
    output, _ = commit(place, state, "--add-dir", top)
    assert output.strip().endswith("more"), output
    assert git(place, "log", "-1", "--format=%s", cwd=state.cwd) == "more"


@pytest.mark.parametrize("name", RUN_BY_GIT)
@pytest.mark.parametrize("build", [*ADDED, submodule])
def test_what_makes_git_run_programs_stays_where_the_git_directory_is_added(
    place: Place, build: Builder, name: str
) -> None:
    state = build(place)
    top = place.repo / ".git" if build is submodule else state.git
    own = Path(git(place, "rev-parse", "--absolute-git-dir", cwd=state.cwd))
    before = {directory: content(directory / name) for directory in (own, top)}
    attempts = "; ".join(f"echo x > {path}/{name}; echo x > {path}/{name}/x; mv {path} {path}2" for path in before)
    commit(place, state, "--add-dir", top, cmd=attempts)
    assert {directory: content(directory / name) for directory in before} == before


def content(path: Path) -> object:
    if path.is_dir():
        return sorted(file.name for file in path.iterdir())
    return path.read_text() if path.is_file() else None

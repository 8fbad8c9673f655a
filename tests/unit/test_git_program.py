"""git reads hostile repositories for us and starts none of the programs they name."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from codex_py.core.session_file import read_git_state
from codex_py.errors import UserError
from codex_py.programs import ProbeResults
from codex_py.protocol.policy import DangerFullAccess
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BackendName
from codex_py.services.git import GitReader, switched_off
from codex_py.services.review import (
    BranchChanges,
    UncommittedChanges,
    branches,
    is_empty,
    recent_commits,
    review_prompt,
)
from codex_py.services.working_tree import working_changes
from tests.support.home import Place
from tests.support.hostile import hostile_repository

BACKENDS: list[tuple[BackendName, ...]] = [("bubblewrap",), ("landlock",), ()]
QUESTIONS: tuple[Callable[[GitReader], object], ...] = (
    working_changes,
    lambda git: is_empty(UncommittedChanges(), git),
    lambda git: is_empty(BranchChanges("main"), git),
    lambda git: review_prompt(BranchChanges("main"), git),
    branches,
    recent_commits,
)


@pytest.mark.parametrize("backends", BACKENDS, ids=["bubblewrap", "landlock", "no sandbox"])
@pytest.mark.parametrize("is_partial", [False, True])
def test_a_hostile_repository_starts_nothing(place: Place, is_partial: bool, backends: tuple[BackendName, ...]) -> None:
    hostile = hostile_repository(place, is_partial=is_partial)
    sandbox = Sandbox(hostile.env, backends=backends)
    for directory in (hostile.repo, hostile.repo / "sub"):
        for question in QUESTIONS:
            with suppress(UserError):  # what is missing in a partial one
                question(GitReader(directory, hostile.env, sandbox=sandbox))
    assert hostile.ran() == []


def test_the_repository_is_as_hostile_as_it_looks(place: Place) -> None:
    """Otherwise the test above says nothing."""
    hostile = hostile_repository(place, is_partial=True)
    for command in ("status", "diff README.md", "diff -- a", "diff --no-ext-diff a", "log -1", "cat-file -p HEAD:c"):
        subprocess.run(["git", *command.split()], cwd=hostile.repo, env=hostile.env, check=False, capture_output=True)
    assert set(hostile.ran()) >= {"filter", "fsmonitor", "external", "textconv", "gpg", "submodule", "promisor"}


def test_what_has_changed_is_known_all_the_same(place: Place) -> None:
    hostile = hostile_repository(place)
    changes = working_changes(GitReader(hostile.repo, hostile.env))
    assert {change.path.name for change in changes} >= {"README.md", "new"}
    [readme] = [change for change in changes if change.path.name == "README.md"]
    assert "+changed" in readme.diff


@pytest.mark.parametrize("backends", BACKENDS, ids=["bubblewrap", "landlock", "no sandbox"])
def test_a_setting_that_cannot_be_switched_off_is_an_error(place: Place, backends: tuple[BackendName, ...]) -> None:
    with (place.repo / ".git/config").open("a") as config:
        config.write(f'[filter "a=b"]\n\tclean = "touch {place.repo}/ran; cat"\n')
    place.write(".gitattributes", "* filter=a=b\n")
    place.write("README.md", "changed\n")
    with pytest.raises(UserError, match=r"its setting `filter\.a=b\.clean` cannot be switched off"):
        working_changes(GitReader(place.repo, place.env, sandbox=Sandbox(place.env, backends=backends)))
    assert not (place.repo / "ran").exists()


def test_settings_are_switched_off_by_their_names() -> None:
    names = b"core.bare\0filter.a.b\n.clean\0filter.lfs.required\0remote.origin.promisor\0remote.origin.url\0"
    assert switched_off(names) == {
        **{f"filter.a.b\n.{key}": "" for key in ("clean", "smudge", "process")},
        "filter.a.b\n.required": "false",
        **{f"filter.lfs.{key}": "" for key in ("clean", "smudge", "process")},
        "filter.lfs.required": "false",
        "remote.origin.promisor": "false",
    }


def test_a_work_tree_elsewhere_is_not_shown(place: Place, tmp_path: Path) -> None:
    (tmp_path / "private").write_text("secret\n")
    subprocess.run(["git", "config", "core.worktree", str(tmp_path)], cwd=place.repo, env=place.env, check=True)
    assert working_changes(GitReader(place.repo, place.env)) == ()


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
def test_a_held_file_that_the_configuration_includes_is_read(place: Place, backend: BackendName) -> None:
    (place.repo / "shared").write_text("[diff]\n\tnoprefix = true\n")
    subprocess.run(["git", "config", "include.path", "../shared"], cwd=place.repo, env=place.env, check=True)
    sandbox = Sandbox(place.env, backends=(backend,))
    assert len(working_changes(GitReader(place.repo, place.env, sandbox=sandbox))) == 1


@pytest.mark.parametrize("exists", [True, False])
def test_no_file_that_commands_may_write_is_read_as_configuration(place: Place, exists: bool) -> None:
    """Landlock alone cannot hold a file in a writable directory."""
    subprocess.run(["git", "config", "include.path", "../shared"], cwd=place.repo, env=place.env, check=True)
    if exists:
        (place.repo / "shared").write_text("")
    sandbox = Sandbox(place.env, backends=("landlock",))
    with pytest.raises(UserError, match=r"shared` which its configuration includes, can be written by commands"):
        working_changes(GitReader(place.repo, place.env, sandbox=sandbox))
    full = GitReader(place.repo, place.env, DangerFullAccess(), sandbox=sandbox)
    assert len(working_changes(full)) == (1 if exists else 0)


def test_an_included_pipe_is_named(place: Place) -> None:
    subprocess.run(["git", "config", "include.path", "../shared"], cwd=place.repo, env=place.env, check=True)
    os.mkfifo(place.repo / "shared")
    with pytest.raises(UserError, match="shared` is not a regular file"):
        working_changes(GitReader(place.repo, place.env))


@pytest.mark.parametrize("backends", BACKENDS, ids=["bubblewrap", "landlock", "no sandbox"])
def test_git_does_not_enter_a_submodule_that_a_command_made(place: Place, backends: tuple[BackendName, ...]) -> None:
    added = ["update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib"]
    subprocess.run(["git", *added], cwd=place.repo, env=place.env, check=True)
    author = ["-c", "user.name=x", "-c", "user.email=x"]
    for command in (["init", "-q", "lib"], ["-C", "lib", *author, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", *command], cwd=place.repo, env=place.env, check=True)
    (place.repo / "lib" / "new").write_text("")
    git = GitReader(place.repo, place.env, sandbox=Sandbox(place.env, backends=backends))
    assert working_changes(git) == ()
    assert is_empty(UncommittedChanges(), git)


def test_variables_of_git_lead_it_nowhere_else(place: Place, tmp_path: Path) -> None:
    env = {**place.env, "GIT_DIR": str(tmp_path), "GIT_INDEX_FILE": "/none", "GIT_EXTERNAL_DIFF": "touch /none"}
    place.write("README.md", "changed\n")
    assert len(working_changes(GitReader(place.repo, env))) == 1


def test_git_is_not_taken_from_the_project(place: Place) -> None:
    fake = place.write(".venv/bin/git", "#!/bin/sh\ntouch ran\n")
    fake.chmod(0o755)
    env = {**place.env, "PATH": f"{fake.parent}:{place.env['PATH']}"}
    assert [change.path.name for change in working_changes(GitReader(place.repo, env))] == ["git"]
    assert not (place.repo / "ran").exists()
    with pytest.raises(UserError, match=f"`git` is not started: it is `{fake}`"):
        working_changes(GitReader(place.repo, {**place.env, "PATH": str(fake.parent)}))


def test_no_sandbox_is_taken_from_the_project_although_another_knows_that_it_works(place: Place) -> None:
    planted = place.write(".venv/bin/bwrap", f'#!/bin/sh\ntouch {place.repo}/ran\nshift; exec "$@"\n')
    planted.chmod(0o755)
    known = ProbeResults()
    assert known.failure(str(planted), lambda: None) is None
    env = {**place.env, "PATH": f"{planted.parent}:{place.env['PATH']}"}
    assert [change.path.name for change in working_changes(GitReader(place.repo, env, known=known))] == ["bwrap"]
    assert not (place.repo / "ran").exists()


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "packed-refs", "info/exclude", "commondir"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["fifo", "directory"])
def test_what_is_no_file_in_a_repository_is_named(place: Place, name: str, make: Callable[[Path], None]) -> None:
    path = place.repo / ".git" / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    make(path)
    with pytest.raises(UserError, match=f"`{path}` is not a regular file"):
        working_changes(GitReader(place.repo, place.env))


@pytest.mark.parametrize("name", [".git/refs/heads/other", ".git/refs/x", ".gitignore", "src/a/.gitattributes"])
def test_a_pipe_that_git_would_wait_for_is_named(place: Place, name: str) -> None:
    path = place.repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path)
    with pytest.raises(UserError, match=f"`{path}` is not a regular file"):
        working_changes(GitReader(place.repo, place.env))


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, Path.touch], ids=["fifo", "directory", "file"])
def test_a_repository_without_references_gets_an_answer(place: Place, make: Callable[[Path], None]) -> None:
    shutil.rmtree(place.repo / ".git/refs")
    make(place.repo / ".git/refs")
    with suppress(UserError):
        working_changes(GitReader(place.repo, place.env))


def test_a_reference_behind_a_great_many_is_found(place: Place) -> None:
    commit = read_git_state(place.repo)
    assert commit is not None
    hash_of_main = commit.commit_hash
    others = "".join(f"{number:040x} refs/heads/a{number:050}\n" for number in range(20_000))
    shutil.rmtree(place.repo / ".git/refs/heads")
    (place.repo / ".git/refs/heads").mkdir()
    (place.repo / ".git/packed-refs").write_text(f"{others}{hash_of_main} refs/heads/main\n")
    assert read_git_state(place.repo) == commit


def test_a_worktree_and_a_submodule_are_repositories_of_their_own(place: Place) -> None:
    with TemporaryDirectory(dir=place.repo.parent) as other:
        shutil.rmtree(other)
        subprocess.run(["git", "worktree", "add", "-q", other], cwd=place.repo, env=place.env, check=True)
        Path(other, "README.md").write_text("changed\n")
        [change] = working_changes(GitReader(Path(other), place.env))
        assert change.path == Path(other, "README.md")

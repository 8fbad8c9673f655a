"""Commits of commands in every state of a repository: which are refused, which succeed, and what stays as it is."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import Finished, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")

COMMIT: Final = "echo more >> file; git add -A . && git commit -qm more && git log -1 --format=%s"


class State(NamedTuple):
    """A repository, and how a command commits there."""

    cwd: Path
    git: Path
    """The git directory that is written, the main one for a linked worktree."""
    cmd: str = COMMIT
    options: tuple[str | Path, ...] = ()


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


def commit(
    place: Place, state: State, *options: str | Path, top: str = "", cmds: Sequence[str] = ()
) -> tuple[list[str], Finished]:
    """What the model reads of each command, and the run."""
    narrow = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    cmds = cmds or [state.cmd]
    calls = [[call(f"c{n}", "exec_command", {"cmd": cmd, "login": False})] for n, cmd in enumerate(cmds)]
    options = ("--skip-git-repo-check", "-C", state.cwd, *state.options, *options)
    with FakeResponses(*calls, [say("done")]) as model:
        place.use_model(model.base_url, f"{narrow}{top}")
        ended = run(place, "exec", "-s", "workspace-write", *options, "go")
    assert ended.status == 0, ended.err
    return [model.requests[-1].output_of(f"c{n}") for n in range(len(cmds))], ended


def package_below(place: Place) -> State:
    place.write("services/api/file", "x\n")
    return State(place.repo / "services" / "api", place.repo / ".git")


def separate_directory(place: Place) -> State:
    store = place.repo.parent / "store"
    git(place, "init", "-q", "--separate-git-dir", store)
    return State(place.repo, store)


def unborn_branch(place: Place) -> State:
    git(place, "checkout", "-q", "--orphan", "new")
    return plain(place)


def hooks_inside(place: Place) -> State:
    (place.repo / ".git" / "own").mkdir()
    git(place, "config", "core.hooksPath", ".git/own")
    return plain(place)


def included_inside(place: Place) -> State:
    (place.repo / ".git" / "more").write_text("[alias]\n\tst = status\n")
    git(place, "config", "include.path", "more")
    return plain(place)


def own_worktree_settings(place: Place) -> State:
    git(place, "config", "extensions.worktreeConfig", "true")
    git(place, "config", "--worktree", "core.abbrev", "12")
    return linked_worktree(place)


def with_submodule(place: Place) -> State:
    submodule(place)
    git(place, "commit", "-qm", "module")
    return plain(place)


def nested_clone(place: Place) -> State:
    git(place, "clone", "-q", ".", "vendor/one")
    for name, value in (("name", "Tester"), ("email", "tester@example.invalid")):
        git(place, "config", f"user.{name}", value, cwd=place.repo / "vendor" / "one")
    return State(place.repo, place.repo / "vendor" / "one" / ".git", f"cd vendor/one; {COMMIT}")


def bare(place: Place) -> State:
    state = worktree_of_bare(place)
    update = "git update-ref HEAD $(git commit-tree -m more -p HEAD HEAD^{tree}) && git log -1 --format=%s"
    return State(state.git, state.git, update)


def another_repository(place: Place) -> State:
    other = place.repo.parent / "other"
    git(place, "clone", "-q", ".", other)
    for name, value in (("name", "Tester"), ("email", "tester@example.invalid")):
        git(place, "config", f"user.{name}", value, cwd=other)
    return State(place.repo, other / ".git", f"cd {other}; {COMMIT}", ("--add-dir", other))


Builder = Callable[[Place], State]
ADDED: Final[tuple[Builder, ...]] = (plain, linked_worktree, worktree_below, worktree_of_bare, submodule)
STATES: Final[tuple[Builder, ...]] = (
    *(*ADDED, package_below, separate_directory, unborn_branch, hooks_inside, included_inside, own_worktree_settings),
    *(with_submodule, nested_clone, bare, another_repository),
)
COMMITS: Final = "git = true\n"


def top_store(place: Place, state: State) -> Path:
    """The directory that the user adds: that of the main repository."""
    return place.repo / ".git" if state.git.is_relative_to(place.repo) else state.git


@pytest.mark.parametrize("build", ADDED)
def test_a_commit_works_where_the_git_directory_is_added(place: Place, build: Builder) -> None:
    state = build(place)
    (output,), _ = commit(place, state, "--add-dir", top_store(place, state))
    assert output.strip().endswith("more"), output
    assert git(place, "log", "-1", "--format=%s", cwd=state.cwd) == "more"


@pytest.mark.parametrize("build", STATES)
def test_a_commit_works_where_the_setting_allows_it(place: Place, build: Builder) -> None:
    state = build(place)
    (output,), _ = commit(place, state, top=COMMITS)
    assert output.strip().endswith("more"), output
    assert git(place, "log", "-1", "--format=%s", "--all", cwd=state.git) == "more"


@pytest.mark.parametrize(
    ("build", "added"), [*((build, False) for build in STATES), *((build, True) for build in ADDED)]
)
def test_no_program_is_planted_for_git(place: Place, build: Builder, added: bool) -> None:
    state = build(place)
    ran, canary = place.home / "ran", place.home / "canary"
    canary.write_text(f"#!/bin/sh\ntouch {ran}\n")
    canary.chmod(0o755)
    own = Path(git(place, "rev-parse", "--absolute-git-dir", cwd=state.cwd))
    inner = (own, state.git, state.git / "modules/libs/one", state.git / "worktrees/linked")
    without_head = f"cd {state.git.parent}; {repository_with(canary)}; rm -f {state.git}/HEAD; cp -r evil/* ."
    for attempts in (
        [cmd for git_directory in dict.fromkeys(inner) for cmd in planting(git_directory, canary)],
        [without_head],
    ):
        if added:
            commit(place, state, "--add-dir", top_store(place, state), cmds=attempts)
        else:
            commit(place, state, top=COMMITS, cmds=attempts)
        for directory in (place.repo, state.cwd, state.git):
            for words in (("status",), ("commit", "--allow-empty", "-m", "x"), ("fetch",), ("gc",), ("push",)):
                subprocess.run(["git", *words], cwd=directory, env=place.env, capture_output=True, check=False)
        assert not ran.exists()


def setting_of(canary: Path) -> str:
    return f"[core]\\n\\tfsmonitor = {canary}\\n\\teditor = {canary}\\n"


def repository_with(canary: Path) -> str:
    """Shell code that makes the repository `evil`."""
    return (
        f"git init -q --bare evil; printf '{setting_of(canary)}' >> evil/config; "
        f"cp {canary} evil/hooks/pre-commit; cp {canary} evil/hooks/pre-receive"
    )


def planting(git_directory: Path, canary: Path) -> list[str]:
    """Attempts to make git run the canary, each of them a command."""
    g, parent, evil = git_directory, git_directory.parent, repository_with(canary)
    add = f"printf '{setting_of(canary)}' >>"
    return [
        *(f"{add} {g}/{name}" for name in ("config", "config.worktree", "more")),
        f"git --git-dir={g} config core.fsmonitor {canary}",
        f"git --git-dir={g} config core.hooksPath {canary.parent}",
        *(f"mkdir -p {g}/{name}; cp {canary} {g}/{name}/pre-commit" for name in ("hooks", "own")),
        f"mv {g}/hooks {g}/h && mkdir {g}/hooks && cp {canary} {g}/hooks/pre-commit",
        f"{evil}; echo $PWD/evil > {g}/commondir",
        f"{evil}; rm {g}/commondir && echo $PWD/evil > {g}/commondir",
        f"{evil}; ln -sf $PWD/evil/config {g}/config",
        f"{evil}; mv evil/config {g}/config",
        f"ln {g}/config other; {add} other",
        f'{evil}; mkdir -p {g}/remotes; printf "URL: $PWD/evil\\nPush: HEAD:x\\n" > {g}/remotes/origin',
        f"{evil}; mkdir -p {g}/branches; echo $PWD/evil > {g}/branches/origin",
        f"mv {g} {g}.old && cp -r {g}.old {g} && {add} {g}/config",
        f"mv {parent} {parent}.old && cp -r {parent}.old {parent} && {add} {g}/config",
    ]


REFUSED: Final = (
    "git add file",
    "git commit -m x",
    "git commit --amend -m x",
    "git stash",
    "git rebase HEAD~1 --force-rebase",
    "git checkout -b new",
    "git switch -c new",
    "git tag v1",
    "git branch new",
    "git reset --hard",
    "git cherry-pick HEAD",
    "git revert --no-edit HEAD",
    "git rm file",
    "git fetch .",
    "git pull . main",
    "git notes add -m x",
    "git hash-object -w README.md",
    "git worktree add trees/new",
    "git gc",
    "git add file || true",
    "git add . 2>&1 | cat",
)


@pytest.mark.parametrize("cmd", REFUSED)
def test_a_refused_command_names_the_setting(place: Place, cmd: str) -> None:
    place.write("file", "x\n")
    git(place, "add", "file")
    git(place, "commit", "-qm", "file")
    place.write("README.md", "changed\n")
    outputs, ended = commit(place, plain(place), cmds=[cmd, cmd])
    assert all("`git = true`" in output for output in outputs), outputs
    assert ended.err.count("`git = true`") == 1, ended.err


@pytest.mark.parametrize("build", STATES)
def test_a_refused_commit_names_the_setting_in_every_state(place: Place, build: Builder) -> None:
    state = build(place)
    (output,), ended = commit(place, state)
    if build is bare:  # it is a writable directory itself
        assert "git = true" not in output + ended.err
    else:
        assert "`git = true`" in output, output
        assert ended.err.count("`git = true`") == 1, ended.err


@pytest.mark.parametrize("top", ["", COMMITS])
@pytest.mark.parametrize("cmd", ["git status", "git log -1", "touch /x/y", "git stash list", "git -C {other} add -A"])
def test_what_the_setting_would_not_change_does_not_name_it(place: Place, top: str, cmd: str) -> None:
    other = place.home / "other"
    git(place, "clone", "-q", ".", other)
    (other / "new").write_text("x")
    (output,), ended = commit(place, plain(place), top=top, cmds=[cmd.format(other=other)])
    assert "git = true" not in output + ended.err, output


@pytest.mark.parametrize(
    "cmd",
    [
        "git push -u origin main",
        "GIT_ALLOW_PROTOCOL=file git submodule add {other} lib",
        "git remote add more {other}",
        "git config a.b c",
        "git checkout -b new --track origin/main",
        "touch .git/hooks/post-commit",
        "git sparse-checkout set x",
    ],
)
def test_where_the_setting_is_on_settings_stay_and_the_output_says_so(place: Place, cmd: str) -> None:
    state = plain(place)
    (place.repo / ".git" / "hooks").mkdir()
    other = place.repo.parent / "other.git"
    git(place, "clone", "-q", "--bare", ".", other)
    git(place, "remote", "add", "origin", other)
    git(place, "fetch", "-q", "origin")
    before = (state.git / "config").read_text()
    (output,), ended = commit(place, state, "--add-dir", other, top=COMMITS, cmds=[cmd.format(other=other)])
    assert "the sandbox keeps the settings and hooks of git read-only" in output, output
    assert "git = true" not in output + ended.err
    assert (state.git / "config").read_text() == before


STOP: Final = (
    "git checkout -qb side && echo one > file && git add file && git commit -qm one && git checkout -q main && "
    "echo two > file && git add file && git commit -qm two && git checkout -q side"
)
LEFT: Final = {
    "exec": f"{STOP} && git rebase -x 'sh ./run.sh' main",
    "exec behind": f"{STOP} && git rebase main; echo 'x ./run.sh' >> .git/rebase-merge/git-rebase-todo",
    "strategy": f"{STOP} && git rebase main; echo x/../run > .git/rebase-merge/strategy",
    "cherry-pick": f"{STOP} && git commit -qm more --allow-empty && git checkout -q main && "
    "git cherry-pick main..side; printf '[options]\n\tstrategy = x/../run\n' > .git/sequencer/opts",
    "in a repository of its own": f"git init -q -b main new && cd new && git config user.name A && "
    f"git config user.email a@example.invalid && git commit -qm start --allow-empty && {STOP} && "
    "git rebase -x ./run main",
}


@pytest.mark.parametrize("cmd", LEFT.values(), ids=LEFT)
def test_an_unfinished_rebase_that_runs_a_program_is_named_at_the_end(place: Place, cmd: str) -> None:
    (output,), ended = commit(place, plain(place), top=COMMITS, cmds=[cmd])
    assert ended.err.count("a command left an unfinished rebase in") == 1, output + ended.err
    assert "run" in ended.err.partition("unfinished rebase")[2]


@pytest.mark.parametrize(
    "cmd", [f"{STOP} && git rebase main", f"{STOP} && git rebase -x true main; git rebase --abort"]
)
def test_a_rebase_that_runs_no_program_is_not_named(place: Place, cmd: str) -> None:
    _, ended = commit(place, plain(place), top=COMMITS, cmds=[cmd])
    assert "left an unfinished" not in ended.err


def test_an_unfinished_rebase_of_the_users_own_is_not_named(place: Place) -> None:
    subprocess.run(f"{STOP} && git rebase -x true main", shell=True, cwd=place.repo, env=place.env, check=False)
    assert (place.repo / ".git" / "rebase-merge").exists()
    _, ended = commit(place, plain(place), top=COMMITS, cmds=["true"])
    assert "left an unfinished" not in ended.err


@pytest.mark.parametrize("name", ["modules/lib", "modules/libs/deep", "worktrees/new"])
def test_a_repository_that_a_command_made_in_the_git_directory_is_named(place: Place, name: str) -> None:
    make = f"git init -q --bare --template= .git/{name} && mkdir .git/{name}/hooks && cd .git/{name}/hooks"
    cmd = f"{make} && echo true > post-checkout && chmod +x post-checkout"
    (output,), ended = commit(place, plain(place), top=COMMITS, cmds=[cmd])
    assert f"repositories that commands made: `{place.repo}/.git/{name}` (the hook `post-checkout`)" in ended.err, (
        output
    )

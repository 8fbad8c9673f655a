"""Repositories that commands make where nothing can stand in the way, and what the user hears of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BACKENDS, BackendName
from codex_py.sandbox.wrapped import Limits
from tests.unit.command_builders import Session, output_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_mounting_backend = pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
MOVED = re.compile(r"a command made `(.*)`, by which git takes settings from there; it is now `(.*?)`(, and the .*)?")


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(below_the_top(tmp_path), WORKSPACE)
    yield made
    await made.processes.kill_all()


def below_the_top(tmp_path: Path) -> Path:
    """A directory of a repository."""
    git(tmp_path, "init", "-q", "repo")
    repo = tmp_path.resolve() / "repo"
    (repo / "sub").mkdir()
    (repo / "sub" / "file").write_text("one\n")
    (repo / ".gitignore").write_text("out/\n")
    git(repo, "add", ".")
    git(repo, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "first")
    return repo / "sub"


def git(directory: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", directory, *words], stdout=subprocess.PIPE, check=True, text=True).stdout


def hold(session: Session, backend: BackendName) -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent.parent), "TMPDIR": os.environ.get("TMPDIR", "")}
    session.sandbox = Sandbox(user, backends=(backend,))


async def out(session: Session, cmd: str) -> str:
    """The output of a command, once all that its sandbox left has been removed."""
    output = output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()
    await session.processes.kill_all()
    return output


def found(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@every_backend
async def test_git_and_ignore_files_work_below_the_top_of_a_repository(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    end = session.sandbox.start_session()
    (session.cwd / "file").write_text("two\n")
    read = "git diff --stat HEAD | head -1; git log --format=%s HEAD; ls -d .git HEAD 2>/dev/null"
    assert (await out(session, read)).splitlines() == ["sub/file | 2 +-", "first"]
    assert "first" in git(session.cwd, "show", "HEAD")
    assert not {".git", "HEAD"}.intersection(found(session.cwd))
    end()


@pytest.mark.parametrize("plant", ["mkdir .git", "echo 'gitdir: x' > .git", "ln -s x .git", "echo 'ref: x' > HEAD"])
@every_backend
async def test_what_makes_a_repository_there_is_moved_away_while_the_command_runs(
    session: Session, backend: BackendName, plant: str
) -> None:
    hold(session, backend)
    name = "HEAD" if "HEAD" in plant else ".git"
    is_contained = backend != "landlock"
    # Ends as soon as it has been moved away; where it is contained, it is stopped before the end of the line.
    end = "sleep 100; echo never" if is_contained else "echo moved"
    output = await out(session, f"{plant}; while test -e {name} || test -L {name}; do sleep 0.01; done; {end}")
    assert output == ("" if is_contained else "moved")
    [line] = session.sandbox.take_notices()
    [(made, aside, stopped)] = MOVED.findall(line)
    assert (made, bool(stopped)) == (str(session.cwd / name), is_contained)
    assert aside in found(session.cwd) and name not in found(session.cwd)
    # So is what a command has made just before it ended.
    assert await out(session, f"{plant}; echo done") in ("done", "")
    assert name not in found(session.cwd)
    assert len(session.sandbox.take_notices()) == 1 and session.sandbox.take_notices() == []


@every_backend
async def test_a_repository_that_the_user_makes_there_stays(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    assert await out(session, "echo one") == "one"
    git(session.cwd, "init", "-q")
    assert await out(session, "git rev-parse --git-dir") == ".git"
    assert session.sandbox.take_notices() == []


@pytest.mark.parametrize("plant", ["git init -q deep", "echo 'gitdir: x' > deep/.git", "ln -s ../x deep/.git"])
@every_backend
async def test_a_repository_among_tracked_files_is_moved_away_after_the_command(
    session: Session, backend: BackendName, plant: str
) -> None:
    (session.cwd / "deep").mkdir()
    (session.cwd / "deep" / "file").write_text("one\n")
    git(session.cwd, "add", ".")
    hold(session, backend)
    # What a command makes elsewhere is its own.
    assert await out(session, f"mkdir new; {plant}; git init -q new; echo done") == "done"
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    [(made, aside, _)] = MOVED.findall(line)
    assert made == str(session.cwd / "deep/.git")
    assert found(session.cwd / "deep") == [aside, "file"] and ".git" in found(session.cwd / "new")
    # Before the next command, too.
    assert await out(session, f"{plant}; echo again") == "again"
    assert await out(session, "ls -a deep | grep -c '^.git$'") == "0"
    assert len(session.sandbox.take_notices()) == 1
    git(session.cwd, "init", "-q", "deep")
    assert await out(session, "git -C deep rev-parse --git-dir") == ".git"
    assert session.sandbox.take_notices() == []


async def test_a_repository_that_the_user_makes_beside_a_server_stays(session: Session) -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(session.cwd.parent.parent)}
    session.sandbox = Sandbox(user, limits=Limits(moves_planted=False), backends=("bubblewrap",))
    # A server is a command that does not end.
    assert await out(session, "mkdir .git && echo served") == "served"
    assert ".git" in found(session.cwd) and session.sandbox.take_notices() == []


@every_mounting_backend
async def test_a_bare_repository_does_not_come_to_take_the_settings_of_another_directory(
    session: Session, backend: BackendName
) -> None:
    bare = session.cwd.parent.parent / "bare"
    git(session.cwd, "init", "-q", "--bare", str(bare))
    session.cwd = bare
    hold(session, backend)
    assert await out(session, "git rev-parse --is-bare-repository; echo other > commondir") == "true"
    assert not (bare / "commondir").exists()
    [line] = session.sandbox.take_notices()
    assert str(bare / "commondir") in line
    assert await out(session, "git rev-parse --is-bare-repository") == "true"


@pytest.mark.parametrize("shape", ["mkdir objects refs", "echo .. > commondir"])
@every_mounting_backend
async def test_what_git_runs_of_a_repository_without_a_working_tree_is_protected_from_the_next_command(
    session: Session, backend: BackendName, shape: str
) -> None:
    hold(session, backend)
    make = f"mkdir -p a/b && cd a/b && echo 'ref: refs/heads/main' > HEAD && {shape} && echo > config && mkdir hooks"
    assert await out(session, make) == ""
    write = "cd a/b; for f in config hooks/update commondir; do echo x >> $f && echo wrote $f; done; mv hooks h"
    written = await out(session, write)
    assert "wrote config" not in written and "wrote hooks" not in written and "cannot move" in written
    assert ("wrote commondir" in written) == ("objects" in shape)


PROGRAMS = {
    "git init -q made && git -C made config core.fsmonitor ./run": "its `config` sets `core.fsmonitor`",
    "git init -q made && git -C made config include.path ../x": "its `config` sets `include.path`",
    "git init -q made && git -C made remote add o ext::sh": "its `config` sets `remote.o.url`",
    "git init -q made && install -D -m 755 /bin/true made/.git/hooks/post-checkout": "the hook `post-checkout`",
    "git init -q --bare made && git -C made config gpg.program x": "its `config` sets `gpg.program`",
    "git init -q --separate-git-dir x/store made && git -C made config core.pager x": "its `config` sets `core.pager`",
}


@pytest.mark.parametrize("make", PROGRAMS)
async def test_the_user_hears_of_a_repository_that_names_programs(session: Session, make: str) -> None:
    hold(session, "bubblewrap")
    assert await out(session, "echo start") == "start"
    assert await out(session, f"mkdir x; {make}") == ""
    assert await out(session, "echo next") == "next"
    [line] = session.sandbox.take_notices()
    path = session.cwd / "made" if "--bare" in make else session.cwd / "made/.git"
    assert line == f"a command made the repository `{path}`, and git in there may run a program: {PROGRAMS[make]}"
    assert await out(session, "echo last") == "last"
    assert session.sandbox.take_notices() == []


async def test_the_user_hears_nothing_of_a_repository_as_git_makes_it(session: Session) -> None:
    hold(session, "bubblewrap")
    assert await out(session, "echo start") == "start"
    commit = "git -c user.name=a -c user.email=a@b.c commit -qm x --allow-empty"
    make = f"git init -q a && cd a && {commit} && cd .. && git clone -q a b && git clone -q --bare a c && echo made"
    assert await out(session, make) == "made"
    assert await out(session, "echo next") == "next"
    assert session.sandbox.take_notices() == []


@every_mounting_backend
async def test_a_temporary_directory_is_left_alone_between_commands(
    session: Session, backend: BackendName, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    session.policy = WorkspaceWrite(exclude_slash_tmp=True)
    hold(session, backend)
    end = session.sandbox.start_session()
    for _ in range(2):
        held = await out(session, f"cd {temporary}; for f in .git HEAD .codex; do (echo x > $f) || echo held; done")
        assert held.count("held") == 3
        assert ".git" not in found(temporary)
    assert (session.cwd / ".codex").is_dir()
    end()
    assert found(temporary) == [] and ".codex" not in found(session.cwd)

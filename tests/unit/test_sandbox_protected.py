"""What other programs run or believe in a writable directory: repositories, hooks, settings of editors and agents."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.config.sections import PROTECTED
from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.git_settings import parse_settings
from codex_py.sandbox.linux import BackendName
from codex_py.sandbox.policy import is_writable
from codex_py.sandbox.wrapped import Limits
from tests.unit.command_builders import Session, output_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
MOUNTING: tuple[BackendName, ...] = ("bubblewrap", "namespaces")
every_mounting_backend = pytest.mark.parametrize("backend", MOUNTING)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(_repository(tmp_path), WORKSPACE)
    yield made
    await made.processes.kill_all()


def _repository(directory: Path) -> Path:
    repo = directory.resolve() / "repo"
    subprocess.run(["git", "init", "-q", repo], check=True)
    return repo


def hold(
    session: Session, backend: BackendName, *, home: Path | None = None, protected: tuple[str, ...] = PROTECTED
) -> None:
    user = {"PATH": os.environ["PATH"], "HOME": str(home or session.cwd.parent)}
    session.sandbox = Sandbox(user, limits=Limits(protected=protected), backends=(backend,))


def run_git(session: Session, *words: str) -> bytes:
    return subprocess.run(["git", "-C", session.cwd, *words], stdout=subprocess.PIPE, check=True).stdout


def configure(session: Session, *words: str) -> None:
    run_git(session, "config", *words)


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


async def _is_held(session: Session, *paths: str) -> None:
    for path in paths:
        said = await _out(session, f"mkdir -p $(dirname {path}); (echo x > {path}) && echo written")
        assert "written" not in said, path
        assert any(words in said for words in ("Read-only", "Is a directory", "Permission denied")), (path, said)


@every_mounting_backend
async def test_a_repository_that_was_there_is_protected_where_it_has_gone(
    session: Session, backend: BackendName
) -> None:
    run_git(session, "init", "-q", "a/b")
    hold(session, backend)
    await _is_held(session, "a/b/.git/hooks/x", "a/b/.git/config")
    await _out(session, "mv a c")
    await _is_held(session, "c/b/.git/config")


@every_mounting_backend
async def test_a_command_cannot_set_back_the_time_by_which_a_change_is_noticed(
    session: Session, backend: BackendName
) -> None:
    (session.cwd / "a" / "b").mkdir(parents=True)
    hold(session, backend)
    assert await _out(session, "echo start") == "start"
    await _out(session, "touch -r a/b stamp; mkdir a/b/.codex; touch -r stamp a/b")
    await _is_held(session, "a/b/.codex/config.toml")


@every_mounting_backend
async def test_directories_of_hooks_cannot_be_written(session: Session, backend: BackendName) -> None:
    configure(session, "core.hooksPath", "tools/hooks/_")
    (session.cwd / "tools" / "hooks" / "_").mkdir(parents=True)
    hold(session, backend)
    await _is_held(session, "tools/hooks/_/pre-commit")
    await _out(session, "mv tools old")
    await _is_held(session, "tools/hooks/_/pre-commit")


@every_mounting_backend
async def test_files_that_the_configuration_includes_cannot_be_written(session: Session, backend: BackendName) -> None:
    (session.cwd / "shared.gitconfig").write_text("[include]\n\tpath = more.gitconfig\n")
    (session.cwd / "more.gitconfig").write_text("[alias]\n\tst = status\n")
    configure(session, "include.path", "../shared.gitconfig")
    hold(session, backend)
    await _is_held(session, "shared.gitconfig", "more.gitconfig")


async def _is_moved(session: Session, path: str, text: str, *, mode: str = "644") -> None:
    """A command that makes this file is stopped, and the file is gone."""
    make = f"mkdir -p $(dirname {path}); echo {text!r} > x; chmod {mode} x; mv x {path}; sleep 60; echo never"
    said = await session.exec(make)
    assert output_of(said) == "" and "exited with code 137" in said
    [line] = session.sandbox.take_notices()
    assert f"`{session.cwd / path}`" in line and not (session.cwd / path).exists()


PAGER = "[core] pager = x"


@every_mounting_backend
async def test_missing_files_that_the_configuration_includes_are_moved_away(
    session: Session, backend: BackendName
) -> None:
    (session.cwd / "tools").mkdir()
    paths = ["shared.gitconfig", "tools/deep.gitconfig", "new/directory/x"]
    if backend == "namespaces":  # bubblewrap leaves links to it
        (session.cwd / "link").symlink_to("target")
    for path in (*paths, "link"):
        configure(session, "--add", "include.path", f"../{path}")
    configure(session, "--add", "includeIf.gitdir:/nowhere.path", "../conditional")
    hold(session, backend)
    assert "fatal" not in await _out(session, "git status --short; ls -A")
    for path in (*paths, "conditional", "target" if backend == "namespaces" else "link"):
        await _is_moved(session, path, PAGER)
    await _out(session, "mv tools old")
    await _is_moved(session, "tools/deep.gitconfig", PAGER)
    assert await _out(session, "echo '[user] name = a' > conditional && git config user.name; rm -r new") == ""


@every_mounting_backend
async def test_a_missing_file_that_the_users_configuration_includes_is_moved_away(
    session: Session, backend: BackendName
) -> None:
    home = session.cwd.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{session.cwd}/"]\n\tpath = {session.cwd}/work.gitconfig\n')
    hold(session, backend, home=home)
    await _is_moved(session, "work.gitconfig", PAGER)


@every_mounting_backend
async def test_hooks_in_a_missing_directory_outside_of_the_repository_are_moved_away(
    session: Session, backend: BackendName, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    session.policy = WORKSPACE.replace(writable_roots=(other,))
    configure(session, "core.hooksPath", str(other / "a" / "hooks"))
    hold(session, backend)
    await _is_moved(session, f"{other}/a/hooks/pre-commit", "#!/bin/sh", mode="755")


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@every_mounting_backend
async def test_the_repository_of_a_submodule_that_only_the_index_names_is_moved_away(
    session: Session, backend: BackendName, object_format: str, version: str
) -> None:
    shutil.rmtree(session.cwd / ".git")
    for name in ("a/file", "a/other", "z"):
        (session.cwd / name).parent.mkdir(exist_ok=True)
        (session.cwd / name).write_text("")
    commit = "1" * (64 if object_format == "sha256" else 40)
    run_git(session, "init", "-q", f"--object-format={object_format}")
    run_git(session, "add", ".")
    for path in ("a/module", "a/module-two", "lib"):
        run_git(session, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    run_git(session, "update-index", "--index-version", version)
    (session.cwd / "lib").mkdir()
    hold(session, backend)
    for path in ("a/module", "a/module-two", "lib"):
        plant = f"mkdir -p {path}; git init -q x; git -C x config core.pager y; mv x/.git {path}; sleep 60; echo never"
        assert await _out(session, plant) == ""
        [line] = session.sandbox.take_notices()
        assert f"`{session.cwd / path}/.git`" in line and not (session.cwd / path / ".git").exists()
    assert await _out(session, "echo x > lib/file && cat lib/file; rmdir a/module; git status --short | head -1") != ""


@every_mounting_backend
async def test_settings_of_editors_and_agents_cannot_be_changed(session: Session, backend: BackendName) -> None:
    for name in (".vscode/tasks.json", "web/.claude/settings.json", ".mcp.json"):
        (session.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (session.cwd / name).write_text("{}")
    hold(session, backend)
    await _is_held(session, ".vscode/tasks.json", "web/.claude/settings.json", ".mcp.json")
    assert await _out(session, "cat .mcp.json") == "{}"
    assert await _out(session, "echo x > AGENTS.md && cat AGENTS.md") == "x"
    # Those that a command makes below are held from the next one on.
    await _out(session, "mkdir web/.cursor")
    await _is_held(session, "web/.cursor/mcp.json")
    # The tools of ours ask before they make one.
    assert not is_writable(session.cwd / ".idea" / "x.xml", session.sandbox.roots(WORKSPACE, session.cwd))


@every_mounting_backend
async def test_the_list_can_be_shortened(session: Session, backend: BackendName) -> None:
    (session.cwd / ".vscode").mkdir()
    (session.cwd / ".idea").mkdir()
    hold(session, backend, protected=(".idea",))
    assert await _out(session, "echo x > .vscode/settings.json && cat .vscode/settings.json") == "x"
    await _is_held(session, ".idea/x.xml")


@every_mounting_backend
async def test_missing_settings_of_editors_and_agents_can_be_made_and_are_named(
    session: Session, backend: BackendName
) -> None:
    other = session.cwd.parent / "other"
    other.mkdir()
    session.policy = WORKSPACE.replace(writable_roots=(other,))
    hold(session, backend)
    names = [name for name in PROTECTED if "/" not in name and not name.startswith((".envrc", ".mcp"))]
    paths = [f"{top}/{name}" for top in (session.cwd, other) for name in names]
    assert (
        await _out(session, f"for p in {' '.join(paths[:4])}; do mkdir -p $p; echo x > $p/tasks.json; done; ls") == ""
    )
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    assert [path for path in paths[:4] if f"`{path}/tasks.json`" not in line] == []
    for cmd in (f"mkdir {names[0]}/x", f"echo x > {names[0]}/tasks.json"):
        assert "read-only for commands" in await _out(session, f"{cmd} || (exit 1)"), cmd
        assert "`sandbox.protected`" in await _out(session, f"{cmd} || (exit 1)"), cmd


@every_mounting_backend
async def test_nothing_stands_in_the_place_of_one_that_the_user_removes_during_the_session(
    session: Session, backend: BackendName
) -> None:
    (session.cwd / ".vscode").mkdir()
    hold(session, backend)
    assert await _out(session, "echo start") == "start"
    (session.cwd / ".vscode").rmdir()
    assert await _out(session, "ls -A") == ".git"


@every_mounting_backend
async def test_shell_profiles_are_held_in_a_writable_home(session: Session, backend: BackendName) -> None:
    for name in (".bashrc", ".gitconfig"):
        (session.cwd / name).write_text("# mine\n")
    (session.cwd / ".config").mkdir()
    hold(session, backend, home=session.cwd)
    await _is_held(session, ".bashrc", ".gitconfig")
    await _is_moved(session, ".config/git/config", PAGER)
    # A missing one that a command made is named.
    assert await _out(session, "echo x > .zshrc && mkdir .config/fish && echo made") == "made"
    session.sandbox.look_at_repositories()
    [line] = session.sandbox.take_notices()
    assert "`.zshrc`" in line.replace(f"{session.cwd}/", "") and ".config/fish" in line
    assert (session.cwd / ".bashrc").read_text() == "# mine\n"
    assert await _out(session, "git config user.name; echo $?") == "1"
    assert (
        await _out(session, "zsh -ic true 2>&1 | grep -v 'not found'; echo x > .config/other && cat .config/other")
        == "x"
    )
    hold(session, backend)
    assert await _out(session, "echo x > .bashrc && cat .bashrc") == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[core]\n\thooksPath = .husky/_\n", {"core.hookspath": ".husky/_"}),
        ('[Core] HooksPath = "a b" # here\n', {"core.hookspath": "a b"}),
        ("[core]\nhookspath = a\\\nb ; x\n", {"core.hookspath": "ab"}),
        ('[includeIf "gitdir:/a"]\n path=x\n', {"includeIf.gitdir:/a.path".lower(): "x"}),
        ("[core]\n bare\n nonsense = \n", {"core.bare": "", "core.nonsense": ""}),
        ('[a "b\\"c"] d = "e;f"\n', {'a.b\\"c.d': "e;f"}),
        ("\0\n[\n[x\n]", {".\0": "", ".]": ""}),
    ],
)
def test_git_settings_are_read_as_git_does(text: str, expected: dict[str, str]) -> None:
    assert dict(parse_settings(text)) == expected


def test_what_is_too_large_to_be_looked_through_is_named(tmp_path: Path) -> None:
    repo = _repository(tmp_path)
    sandbox = Sandbox({"HOME": str(tmp_path)})
    sandbox.roots(WORKSPACE, repo)
    assert sandbox.unsearched(WORKSPACE, repo) is None
    includes = "".join(f"[include]\npath = ../{number}\n" for number in range(200))
    with (repo / ".git" / "config").open("a") as config:
        config.write(includes + "#" * (1 << 20))
    with (repo / ".git" / "index").open("wb") as index:
        index.truncate(64 << 20)
    (repo / ".gitmodules").write_text("#" * (1 << 20) + "#")
    (repo / ".codex").mkdir()
    for number in range(20_001):
        (repo / ".codex" / f"{number}").touch()
    sandbox = Sandbox({"HOME": str(tmp_path)})
    sandbox.roots(WORKSPACE, repo)
    named = sandbox.unsearched(WORKSPACE, repo) or ""
    words = ("includes about 200 files", ".git/config` is", "index` is", ".gitmodules` is", ".codex` has")
    assert [word for word in words if word not in named] == []


def test_a_mercurial_repository_is_protected_where_it_is(tmp_path: Path) -> None:
    repo = _repository(tmp_path)
    (repo / "sub" / ".hg").mkdir(parents=True)
    sandbox = Sandbox({"HOME": str(tmp_path)}, limits=Limits(protected=PROTECTED))
    roots = sandbox.roots(WORKSPACE, repo)
    assert not is_writable(repo / "sub" / ".hg" / "hgrc", roots)

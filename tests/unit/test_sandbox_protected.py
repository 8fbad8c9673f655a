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
async def test_a_repository_that_a_command_made_is_protected_from_the_next_one(
    session: Session, backend: BackendName
) -> None:
    hold(session, backend)
    assert await _out(session, "mkdir -p a/b && git init -q a/b && echo x > a/b/.git/hooks/x && echo made") == "made"
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
    await _out(session, "touch -r a/b stamp; mkdir a/b/.git; touch -r stamp a/b")
    await _is_held(session, "a/b/.git/config")


@every_mounting_backend
async def test_the_repository_of_a_submodule_cannot_be_made(session: Session, backend: BackendName) -> None:
    (session.cwd / "lib").mkdir()
    (session.cwd / ".gitmodules").write_text('[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/lib\n')
    hold(session, backend)
    await _is_held(session, "lib/.git", "lib/.git/config")
    assert await _out(session, "echo x > lib/file && cat lib/file") == "x"


@pytest.mark.parametrize("exists", [True, False])
@every_mounting_backend
async def test_directories_of_hooks_cannot_be_written(session: Session, backend: BackendName, exists: bool) -> None:
    configure(session, "core.hooksPath", "tools/hooks/_")
    if exists:
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


@every_mounting_backend
async def test_missing_files_that_the_configuration_includes_cannot_be_made(
    session: Session, backend: BackendName
) -> None:
    (session.cwd / "tools").mkdir()
    paths = ["shared.gitconfig", "tools/deep.gitconfig", "new/directory/x"]
    if backend == "namespaces":  # bubblewrap leaves links to it
        (session.cwd / "link").symlink_to("target")
        paths.append("link")
    for path in paths:
        configure(session, "--add", "include.path", f"../{path}")
    configure(session, "--add", "includeIf.gitdir:/nowhere.path", "../conditional")
    hold(session, backend)
    await _is_held(session, *paths, "conditional", *(["target"] if backend == "namespaces" else []))
    # An empty file stands there meanwhile, because git fails at a directory.
    assert "fatal" not in await _out(session, "git status --short")
    await _out(session, "mv tools old")
    await _is_held(session, "tools/deep.gitconfig")
    await session.processes.kill_all()
    assert {path.name for path in session.cwd.iterdir()} - {"link"} == {".git", "tools"}
    assert list((session.cwd / "tools").iterdir()) == []


@every_mounting_backend
async def test_a_missing_file_that_the_users_configuration_includes_cannot_be_made(
    session: Session, backend: BackendName
) -> None:
    home = session.cwd.parent / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[includeIf "gitdir:{session.cwd}/"]\n\tpath = {session.cwd}/work.gitconfig\n')
    hold(session, backend, home=home)
    await _is_held(session, "work.gitconfig")


@every_mounting_backend
async def test_hook_directories_outside_of_the_repository_cannot_be_made(
    session: Session, backend: BackendName, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    session.policy = WORKSPACE.replace(writable_roots=(other,))
    configure(session, "core.hooksPath", str(other / "a" / "hooks"))
    hold(session, backend)
    await _is_held(session, f"{other}/a/hooks/pre-commit")


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
@every_mounting_backend
async def test_the_repository_of_a_submodule_that_only_the_index_names_cannot_be_made(
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
    await _is_held(session, "a/module/.git", "a/module-two/.git/config", "lib/.git/config")
    assert await _out(session, "echo x > lib/file && cat lib/file") == "x"
    await session.processes.kill_all()
    assert not (session.cwd / "a" / "module").exists()


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
async def test_missing_settings_of_editors_and_agents_cannot_be_made(session: Session, backend: BackendName) -> None:
    other = session.cwd.parent / "other"
    other.mkdir()
    session.policy = WORKSPACE.replace(writable_roots=(other,))
    hold(session, backend)
    # `.hg` is protected where it is; an empty one would be a repository.
    names = [name for name in PROTECTED if "/" not in name and name != ".hg"]
    paths = [f"{top}/{name}" for top in (session.cwd, other) for name in names]
    script = "(mkdir -p $p; echo x > $p/tasks.json; echo x > x; mv -T x $p; rmdir $p; mv $p y; rm -rf x y) 2>/dev/null"
    assert await _out(session, f"for p in {' '.join(paths)}; do {script}; ls -A $p; done; ls") == ""
    for cmd in (
        "mkdir .vscode",
        "echo x > .vscode/tasks.json",
        "mkdir -p .idea && touch .idea/x",
        "echo x > .mcp.json",
    ):
        assert "read-only for commands" in await _out(session, f"{cmd} || (exit 1)"), cmd
        assert "`sandbox.protected`" in await _out(session, f"{cmd} || (exit 1)"), cmd
    # What stands there meanwhile is seen by nobody who looks for changes.
    running = await session.exec("git status --porcelain; sleep 60", yield_time_ms=1000)
    assert " .vscode" not in output_of(running)
    assert (run_git(session, "status", "--porcelain"), (session.cwd / ".vscode").is_dir()) == (b"", True)
    await session.processes.kill_all()
    assert [path.name for path in (*session.cwd.iterdir(), *other.iterdir())] == [".git"]


@every_mounting_backend
async def test_one_that_the_user_removes_during_the_session_cannot_be_made(
    session: Session, backend: BackendName
) -> None:
    (session.cwd / ".vscode").mkdir()
    hold(session, backend)
    assert await _out(session, "echo start") == "start"
    (session.cwd / ".vscode").rmdir()
    await _is_held(session, ".vscode/tasks.json")


@every_mounting_backend
async def test_shell_profiles_are_held_in_a_writable_home(session: Session, backend: BackendName) -> None:
    for name in (".bashrc", ".gitconfig"):
        (session.cwd / name).write_text("# mine\n")
    (session.cwd / ".config").mkdir()
    hold(session, backend, home=session.cwd)
    await _is_held(session, ".bashrc", ".gitconfig", ".profile", ".bash_login", ".bash_profile")
    await _is_held(session, ".zshrc", ".zshenv", ".config/git/config", ".config/fish/config.fish")
    assert (session.cwd / ".bashrc").read_text() == "# mine\n"
    assert await _out(session, "git config user.name; echo $?") == "1"
    assert (
        await _out(session, "zsh -ic true 2>&1 | grep -v 'not found'; echo x > .config/other && cat .config/other")
        == "x"
    )
    hold(session, backend)
    assert await _out(session, "echo x > .bashrc && cat .bashrc") == "x"


@pytest.mark.parametrize("name", [".profile", ".bash_login", ".bash_profile"])
@every_mounting_backend
async def test_what_stands_for_a_missing_login_profile_leads_to_the_one_that_is_there(
    session: Session, backend: BackendName, name: str
) -> None:
    (session.cwd / name).write_text("echo mine\n")
    hold(session, backend, home=session.cwd)
    end = session.sandbox.start_session()
    await _is_held(session, ".bash_profile", ".bash_login", ".profile")
    assert _login(session.cwd) == "mine\n"
    assert await _out(session, f"HOME={session.cwd} bash -lc true") == "mine"
    await session.processes.kill_all()
    end()
    assert sorted(path.name for path in session.cwd.iterdir()) == sorted([".git", name])


def _login(home: Path) -> str:
    env = {"HOME": str(home), "PATH": os.environ["PATH"]}
    ran = subprocess.run(["bash", "-lc", "true"], env=env, cwd=home, capture_output=True, check=True, text=True)
    return ran.stdout + ran.stderr


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


def test_a_mercurial_repository_is_protected_where_it_is_and_not_kept_from_being_made(tmp_path: Path) -> None:
    repo = _repository(tmp_path)
    (repo / "sub" / ".hg").mkdir(parents=True)
    sandbox = Sandbox({"HOME": str(tmp_path)}, limits=Limits(protected=PROTECTED))
    roots = sandbox.roots(WORKSPACE, repo)
    assert not is_writable(repo / "sub" / ".hg" / "hgrc", roots)
    assert repo / ".hg" not in roots[0].protected

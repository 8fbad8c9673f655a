"""Files of ours that no command reads, however they are replaced while it runs, and what can be read beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from codex_py.auth.login_store import FileStore
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.denials import default_denials
from codex_py.sandbox.linux import BACKENDS, BackendName
from tests.unit.command_builders import Session, output_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")

WORKSPACE = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
MOUNTING: tuple[BackendName, ...] = ("bubblewrap", "namespaces")
every_backend = pytest.mark.parametrize("backend", BACKENDS)
every_mounting_backend = pytest.mark.parametrize("backend", MOUNTING)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    """Works in `repo`; a home with a login, settings and a skill is beside it."""
    top = _furnish(tmp_path)
    made = Session(top / "repo", WORKSPACE)
    yield made
    await made.processes.kill_all()


def _furnish(directory: Path) -> Path:
    top = Path(os.path.realpath(directory))
    (top / "repo").mkdir()
    (top / "home" / "skills" / "lint").mkdir(parents=True)
    (top / "home" / "skills" / "lint" / "SKILL.md").write_text("how to lint\n")
    (top / "home" / "AGENTS.md").write_text("be brief\n")
    FileStore(top / "home").save({"OPENAI_API_KEY": "old-key"})
    return top


def hold(session: Session, backend: BackendName, secret: str = "../home/auth.json", *deny_read: str) -> Path:
    """Hold the commands this way; give back the directory of the secret, which is not known as our home."""
    user = {"PATH": os.environ["PATH"]}
    session.sandbox = Sandbox(user, deny_read=deny_read, secrets=[Path(secret)], backends=(backend,))
    return Path(os.path.normpath(session.cwd / secret)).parent


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


def _while(session: Session, change: Callable[[], object], then: str) -> str:
    """What a command prints that has started before `change` is made, and does `then` after it."""
    argv = ("/bin/sh", "-c", f"exec 2>&1; echo started; read -r _; {then}")
    command = PreparedCommand(argv, session.cwd, os.environ)
    wrapped = session.sandbox.wrap(command, policy=session.policy, cwd=session.cwd)
    with subprocess.Popen(
        wrapped.argv, cwd=session.cwd, pass_fds=wrapped.fds, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        wrapped.close_fds()
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == b"started\n"
            change()
            return running.communicate(b"\n", timeout=60)[0].decode()
        finally:
            running.kill()
            wrapped.cleanup()


def _sign_in(home: Path, *keys: str) -> Callable[[], None]:
    def change() -> None:
        for key in keys:
            FileStore(home).save({"OPENAI_API_KEY": key})

    return change


@pytest.mark.parametrize("policy", [ReadOnly(), WORKSPACE], ids=["read-only", "workspace-write"])
@every_backend
def test_a_login_that_is_renewed_stays_hidden_from_running_commands(
    session: Session, backend: BackendName, policy: SandboxPolicy
) -> None:
    home = hold(session, backend)
    session.policy = policy
    then = f"cat {home}/auth.json; cat {home}/.auth-*; cat {home}/AGENTS.md"
    said = _while(session, _sign_in(home, "new-key", "newer-key"), then)
    assert "Permission denied" in said
    assert "be brief" in said
    assert "key" not in said
    assert FileStore(home).load() == {"OPENAI_API_KEY": "newer-key"}


@pytest.mark.parametrize("secret", ["../home/auth.json", "../new/home/auth.json"], ids=["home", "no home yet"])
@every_backend
def test_a_login_made_while_a_command_runs_is_hidden_from_it(
    session: Session, backend: BackendName, secret: str
) -> None:
    home = hold(session, backend, secret)
    FileStore(home).remove()
    said = _while(session, _sign_in(home, "new-key"), f"cat {home}/auth.json || echo refused")
    assert "refused" in said
    assert "new-key" not in said
    assert (home / "auth.json").exists()


@every_mounting_backend
def test_a_login_in_a_writable_directory_is_hidden_too(session: Session, backend: BackendName) -> None:
    shutil.copytree(session.cwd.parent / "home", session.cwd / "own")
    home = hold(session, backend, "own/auth.json")
    then = "cat own/auth.json; rm own/auth.json; (echo x > own/auth.json)"
    said = _while(session, _sign_in(home, "new-key"), then)
    assert [said.count(why) for why in ("ermission denied", "Read-only file system")] == [1, 2]
    assert "key" not in said
    assert FileStore(home).load() == {"OPENAI_API_KEY": "new-key"}
    FileStore(home).remove()
    assert "No such file" in _while(session, _sign_in(home, "new-key"), "cat own/auth.json")


@every_mounting_backend
async def test_the_rest_of_a_writable_directory_stays_writable(session: Session, backend: BackendName) -> None:
    shutil.copytree(session.cwd.parent / "home", session.cwd / "own")
    home = hold(session, backend, "own/auth.json")
    written = (
        "echo more >> own/AGENTS.md; mkdir own/skills/new; echo x > own/skills/new/SKILL.md; rm -r own/skills/lint"
    )
    assert await _out(session, written) == ""
    assert (home / "AGENTS.md").read_text() == "be brief\nmore\n"
    assert [path.name for path in (home / "skills").iterdir()] == ["new"]
    assert "Read-only file system" in await _out(session, "touch own/new")


@every_backend
async def test_everything_beside_a_login_can_be_read(session: Session, backend: BackendName) -> None:
    home = hold(session, backend)
    large = os.urandom(200_000)
    (home / "large.db").write_bytes(large)
    (home / "empty").touch()
    (home / "tool").write_text("#!/bin/sh\necho tool runs\n")
    (home / "tool").chmod(0o755)
    (home / "a b\n:,\\").write_text("odd\n")
    (home / "memories").mkdir()
    (home / "link").symlink_to("skills/lint")
    (home / "dangling").symlink_to("nowhere")
    os.mkfifo(home / "pipe")
    names = sorted(path.name for path in home.iterdir())
    listed = await _out(session, f"cd {home} && {sys.executable} -S -c 'import os; print(sorted(os.listdir()))'")
    assert listed == str(names)
    assert await _out(session, f"cd {home} && cat skills/lint/SKILL.md link/SKILL.md AGENTS.md a\\ *") == (
        "how to lint\nhow to lint\nbe brief\nodd"
    )
    assert await _out(session, f"cd {home} && wc -c < large.db && cat empty && ./tool && readlink dangling") == (
        "200000\ntool runs\nnowhere"
    )
    refusal = "Permission denied" if backend == "landlock" else "Read-only file system"
    for path in ("new", "AGENTS.md", "skills/new", "large.db"):
        assert refusal in await _out(session, f"(echo x >> {home}/{path})")
    assert sorted(path.name for path in home.iterdir()) == names
    assert (home / "AGENTS.md").read_text() == "be brief\n"


@every_backend
def test_directories_beside_a_login_are_seen_as_they_are_now(session: Session, backend: BackendName) -> None:
    home = hold(session, backend)
    later = home / "skills" / "later"
    said = _while(session, lambda: shutil.copytree(home / "skills" / "lint", later), f"cat {later}/SKILL.md")
    assert said == "how to lint\n"


@every_backend
def test_a_login_that_is_a_link_is_hidden_in_both_places(session: Session, backend: BackendName) -> None:
    home = hold(session, backend)
    store = session.cwd.parent / "store"
    store.mkdir()
    (home / "auth.json").rename(store / "login.json")
    (home / "auth.json").symlink_to(store / "login.json")

    def change() -> None:
        FileStore(home).save({"OPENAI_API_KEY": "new-key"})
        (session.cwd / "draft").write_text("newer-key")
        (session.cwd / "draft").replace(home / "auth.json")

    said = _while(session, change, f"cat {home}/auth.json; cat {store}/*; cat {store}/.login-*")
    assert not (home / "auth.json").is_symlink()
    assert "Permission denied" in said
    assert "key" not in said


@every_backend
def test_a_home_that_is_a_link_hides_its_login(session: Session, backend: BackendName) -> None:
    (session.cwd.parent / "linked [1]").symlink_to("home")
    home = hold(session, backend, "../linked [1]/auth.json")
    then = f'cat "{home}/auth.json"; cat ../home/auth.json; cat ../home/AGENTS.md'
    said = _while(session, _sign_in(home, "new-key"), then)
    assert (said.count("Permission denied"), "be brief" in said, "new-key" in said) == (2, True, False)


@every_mounting_backend
async def test_a_workspace_below_the_home_can_be_worked_in(session: Session, backend: BackendName) -> None:
    top = session.cwd.parent
    session.cwd = top / "home" / "worktrees" / "one"
    session.cwd.mkdir(parents=True)
    hold(session, backend, "../../auth.json")
    assert await _out(session, "echo x > new && cat new ../../AGENTS.md") == "x\nbe brief"
    assert "Permission denied" in await _out(session, "cat ../../auth.json")
    session.cwd = top / "home" / "direct"
    session.cwd.mkdir()
    assert await _out(session, "echo x > new && cat new; ls ..") == "x\nAGENTS.md\nauth.json\ndirect\nskills\nworktrees"


@every_mounting_backend
async def test_work_in_the_home_itself_is_not_hindered(session: Session, backend: BackendName) -> None:
    session.cwd = session.cwd.parent / "home"
    hold(session, backend, "auth.json")
    assert await _out(session, "echo x > new && mv new newer && cat newer") == "x"
    assert "Permission denied" in await _out(session, "cat auth.json")


def hold_home(session: Session, backend: BackendName, home: str) -> Path:
    """Hold the commands this way, as a session does that has this home."""
    user = {"PATH": os.environ["PATH"]}
    secret = Path(home, "auth.json")
    session.sandbox = Sandbox(user, secrets=[secret], home=Path(home), backends=(backend,))
    return Path(os.path.normpath(session.cwd / home))


@every_mounting_backend
async def test_our_home_in_the_workspace_can_be_read_and_not_written(session: Session, backend: BackendName) -> None:
    shutil.copytree(session.cwd.parent / "home", session.cwd / "tools" / "own")
    home = hold_home(session, backend, "tools/own")
    names = sorted(path.name for path in home.iterdir())
    for attempt in (
        "echo x >> tools/own/AGENTS.md",
        "echo x > tools/own/config.toml",
        "mkdir tools/own/rules",
        "rm -r tools/own/skills",
        "cp tools/own/AGENTS.md tools/own/AGENTS.override.md",
    ):
        assert "Read-only file system" in await _out(session, f"({attempt})")
    for attempt in ("mv tools elsewhere", "rm -r tools", "rmdir tools/own"):
        assert await _out(session, attempt) != ""
    assert sorted(path.name for path in home.iterdir()) == names
    assert (home / "skills" / "lint" / "SKILL.md").exists()
    assert await _out(session, "cat tools/own/AGENTS.md; echo x > tools/new && mv tools/new new && cat new") == (
        "be brief\nx"
    )
    assert "Permission denied" in await _out(session, "cat tools/own/auth.json")


@every_mounting_backend
async def test_a_workspace_that_is_our_home_can_only_be_read(session: Session, backend: BackendName) -> None:
    session.cwd = session.cwd.parent / "home"
    hold_home(session, backend, ".")
    assert "Read-only file system" in await _out(session, "(echo x > config.toml)")
    assert "Read-only file system" in await _out(session, "(echo x >> AGENTS.md)")
    assert await _out(session, "cat AGENTS.md") == "be brief"
    assert "Permission denied" in await _out(session, "cat auth.json")


@every_mounting_backend
async def test_a_workspace_inside_our_home_can_be_worked_in(session: Session, backend: BackendName) -> None:
    top = session.cwd.parent
    session.cwd = top / "home" / "worktrees" / "one"
    session.cwd.mkdir(parents=True)
    hold_home(session, backend, "../..")
    session.policy = WorkspaceWrite(writable_roots=(top,), exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    assert await _out(session, "echo x > new && cat new ../../AGENTS.md; echo x > ../../../repo/b") == "x\nbe brief"
    assert "Read-only file system" in await _out(session, "(echo x > ../../config.toml)")
    assert "Permission denied" in await _out(session, "cat ../../auth.json")


@every_mounting_backend
async def test_a_crowded_home_is_protected_too(session: Session, backend: BackendName) -> None:
    shutil.copytree(session.cwd.parent / "home", session.cwd / "own")
    home = hold_home(session, backend, "own")
    for number in range(500):
        (home / f"f{number}").touch()
    assert "Read-only file system" in await _out(session, "(echo x > own/config.toml)")
    assert "Permission denied" in await _out(session, "cat own/auth.json")


@every_mounting_backend
async def test_a_crowded_directory_is_left_as_it_is(session: Session, backend: BackendName) -> None:
    home = hold(session, backend)
    for number in range(500):
        (home / f"f{number}").touch()
    said = _while(session, lambda: (home / "later").write_text("came later\n"), f"ls {home} | wc -l; cat {home}/later")
    assert said == "504\ncame later\n"
    assert "Permission denied" in await _out(session, f"cat {home}/auth.json")


@every_backend
async def test_a_login_below_a_denied_directory_stays_hidden_with_it(session: Session, backend: BackendName) -> None:
    home = hold(session, backend, "../home/auth.json", "../home")
    assert "Permission denied" in await _out(session, f"cat {home}/AGENTS.md || cat {home}/auth.json")


@every_backend
def test_what_is_gone_before_the_command_starts_is_left_out(session: Session, backend: BackendName) -> None:
    home = hold(session, backend)
    (home / "big").write_bytes(bytes(100_000))
    (home / "directory").mkdir()
    (home / "link").symlink_to("big")
    command = PreparedCommand(("/bin/ls", str(home)), session.cwd, os.environ)
    wrapped = session.sandbox.wrap(command, policy=WORKSPACE, cwd=session.cwd)
    for name in ("big", "link", "auth.json"):
        (home / name).unlink()
    (home / "directory").rmdir()
    ran = subprocess.run(wrapped.argv, pass_fds=wrapped.fds, capture_output=True, text=True, check=False)
    wrapped.close_fds()
    wrapped.cleanup()
    listed = [name for name in ran.stdout.split() if name not in ("auth.json", "link")]
    assert (ran.stderr, ran.returncode, listed) == ("", 0, ["AGENTS.md", "skills"])


async def test_no_descriptor_of_what_is_copied_is_inside(session: Session) -> None:
    hold(session, "bubblewrap")
    assert await _out(session, "ls /proc/self/fd; true") == "0\n1\n2\n3"


def test_tools_do_not_read_a_login_either(session: Session) -> None:
    home = hold(session, "bubblewrap")
    (session.cwd / "link").symlink_to(home / "auth.json")
    for path in (home / "auth.json", session.cwd / "link"):
        assert not session.sandbox.may_read(path, ReadOnly(), session.cwd)
    assert session.sandbox.may_read(home / "AGENTS.md", ReadOnly(), session.cwd)


def test_a_directory_that_a_variable_names_is_looked_into_for_credentials() -> None:
    moved = {"DOCKER_CONFIG": "/d", "GH_CONFIG_DIR": "/g/", "CARGO_HOME": "/c", "HF_HOME": "relative"}
    denied = {path for path, _ in default_denials({"HOME": "/h", **moved}, ["/g/hosts.yml"])}
    assert {"/d/config.json", "/c/credentials.toml", "/h/.docker/config.json", "/h/.claude.json"} < denied
    assert not {"/d", "/g/hosts.yml", "/c", "relative/token"} & denied

"""The ways to hold a command without bubblewrap: namespaces of our own, and Landlock."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.programs import ProbeResults
from codex_py.protocol.policy import NetworkAccess, ReadOnly, WorkspaceWrite
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.sandbox.linux import BACKENDS, BackendName, SystemCallFilters, make_backend
from codex_py.sandbox.mounts import Mount
from tests.unit.command_builders import Session, output_of, session_id_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
PYTHON = sys.executable
LOOPBACK = (
    "import asyncio\n"
    "async def main():\n"
    "    async def greet(reader, writer):\n"
    "        writer.write(b'hello'); await writer.drain(); writer.close()\n"
    "    server = await asyncio.start_server(greet, '127.0.0.1', 0)\n"
    "    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())\n"
    "    print((await reader.read()).decode()); writer.close()\n"
    "asyncio.run(asyncio.wait_for(main(), 60))\n"
)


def workspace(network: NetworkAccess = False) -> WorkspaceWrite:
    return WorkspaceWrite(network_access=network, exclude_slash_tmp=True, exclude_tmpdir_env_var=True)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    made = Session(_repository(tmp_path), workspace())
    yield made
    await made.processes.kill_all()


def _repository(directory: Path, *options: str) -> Path:
    repo = Path(os.path.realpath(directory)) / "repo"
    subprocess.run(["git", "init", "-q", *options, repo], check=True)
    return repo


def _is_running(mark: bytes) -> bool:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if mark in path.read_bytes():
                return True
    return False


def hold(session: Session, *backends: BackendName) -> None:
    session.sandbox = Sandbox({"PATH": os.environ["PATH"]}, backends=backends)


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


@pytest.mark.parametrize("name", ["bubblewrap", "namespaces"])
def test_all_of_the_machine_can_be_writable_but_for_what_is_protected(tmp_path: Path, name: BackendName) -> None:
    (tmp_path / "home").mkdir()
    for file in ("kept", "home/config.toml"):
        (tmp_path / file).touch()
    mounts = [
        Mount("writable", Path("/")),
        Mount("read-only", tmp_path / "kept"),
        Mount("screen", tmp_path / "home"),
        Mount("shown", tmp_path / "home" / "config.toml"),
    ]
    backend = make_backend(name, {"PATH": os.environ["PATH"]})
    assert backend.probe((), ProbeResults()) is None
    fd = SystemCallFilters().open(False)
    try:
        options = backend.options(mounts, network=False, workdir=tmp_path, filter_fd=fd, status_fd=-1)
        script = "echo x > /dev/null && echo fine; for f in new kept home/config.toml home/b; do echo x > $f; done"
        ran = subprocess.run([*options, "/bin/sh", "-c", script], pass_fds=(fd,), capture_output=True, check=False)
    finally:
        os.close(fd)
    assert (ran.stdout, ran.stderr.count(b"Read-only file system")) == (b"fine\n", 3), ran.stderr
    assert (tmp_path / "new").read_text() == "x\n"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_ordinary_work_gets_done(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    assert await _out(session, "mkdir d && echo x > d/a && mv d e && cat e/a && rm -r e; echo $?") == "x\n0"
    assert await _out(session, "echo x > /dev/null; head -c 2 /dev/zero | wc -c") == "2"
    assert await _out(session, "echo a | cat | (read -r l; echo $l)") == "a"
    assert "exited with code 5" in await session.exec("exit 5")
    assert "exited with code 143" in await session.exec("kill -TERM $$; sleep 5")


@pytest.mark.parametrize("backend", BACKENDS)
async def test_programs_people_use_work_inside(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    (session.cwd / "test_it.py").write_text("import asyncio\n\n\ndef test_it():\n    asyncio.run(asyncio.sleep(0))\n")
    assert await _out(session, "git status --short") == "?? test_it.py"
    assert "1 passed" in await _out(session, f"{PYTHON} -m pytest -q -p no:cacheprovider")
    node = shutil.which("node") or str(Path(PYTHON).parent / "node")
    script = "require('child_process').execFile('echo', ['x'], (error, out) => console.log(error, out))"
    assert await _out(session, f'{node} -e "{script}"') == "null x"


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_a_server_on_the_loopback_serves_inside(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    session.policy = workspace("loopback")
    (session.cwd / "serve.py").write_text(LOOPBACK)
    assert await _out(session, f"{PYTHON} serve.py") == "hello"


async def test_landlock_has_no_loopback_of_its_own_and_so_none(session: Session) -> None:
    hold(session, "landlock")
    session.policy = workspace("loopback")
    assert "PermissionError" in await _out(session, f'{PYTHON} -S -c "import socket; socket.socket()"')


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_terminal_works_inside(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    running = session_id_of(await session.exec(f"{PYTHON} -S -q", tty=True, yield_time_ms=250))
    await session.until(running, ">>>")
    await session.write(running, "6*7\n")
    await session.until(running, "42")
    await session.type_until(running, "\x03", "KeyboardInterrupt")


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_everything_inside_ends_with_its_sandbox(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    # Of this process alone: the same test may run beside it.
    mark = f"4321.{os.getpid()}"
    running = session_id_of(await session.exec(f"setsid sleep {mark} & sleep {mark}", yield_time_ms=250))
    keeper = session.processes.get(running)
    await session.processes.kill_all()
    assert keeper.exit_code == 137
    assert not _is_running(mark.encode())


async def test_an_interrupt_reaches_the_command_in_namespaces(session: Session) -> None:
    hold(session, "namespaces")
    script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    running = session_id_of(await session.exec(script, yield_time_ms=250))
    await session.until(running, "ready")
    text = await session.write(running, "\x03", yield_time_ms=30_000)
    assert "caught\n" in text
    assert "exited with code 5" in text


@pytest.mark.parametrize("name", [".git", ".codex", ".agents"])
async def test_a_linked_protected_directory_can_be_neither_replaced_nor_written(session: Session, name: str) -> None:
    repo = session.cwd
    shutil.rmtree(repo / ".git")
    (repo / "store").mkdir()
    (repo / name).symlink_to("store")
    # bubblewrap cannot mount on a link: the next way does it.
    hold(session, "bubblewrap", "namespaces")
    assert "Device or resource busy" in await _out(session, f"rm {name}")
    assert "Device or resource busy" in await _out(session, f"mv {name} other")
    assert "Device or resource busy" in await _out(session, f"ln -sfn /etc {name}")
    assert "Read-only file system" in await _out(session, f"touch {name}/config")
    assert await _out(session, f"readlink {name}; touch other; ls") == "store\nother\nstore"
    assert str((repo / name).readlink()) == "store"


async def test_a_linked_protected_directory_is_not_left_unheld(session: Session) -> None:
    shutil.rmtree(session.cwd / ".git")
    (session.cwd / ".git").symlink_to("store")
    hold(session, "bubblewrap")
    assert "no command can run" in await session.exec("true")


@pytest.mark.parametrize("backend", ["namespaces", "landlock"])
async def test_commands_have_no_rights_and_no_dumps(session: Session, backend: BackendName) -> None:
    hold(session, backend)
    status = await _out(session, "grep -E '^(Cap...|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t'")
    zero = "0" * 16
    caps = [f"Cap{kind}:{zero}" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")]
    found = status.splitlines()
    if backend == "landlock" and os.geteuid():
        # The bound on new ones is not a user's to lower, and without new privileges it bounds nothing.
        del found[3], caps[3]
    assert found == [*caps, "NoNewPrivs:1", "Seccomp:2"]
    assert await _out(session, "ulimit -Hc") == "0"
    assert await _out(session, "ls /proc/self/fd") == "0\n1\n2\n3"


def test_only_landlock_has_a_shortfall(tmp_path: Path) -> None:
    said = {
        name: Sandbox({"PATH": os.environ["PATH"]}, backends=(name,)).shortfall(ReadOnly(), tmp_path)
        for name in BACKENDS
    }
    assert (said["bubblewrap"], said["namespaces"]) == (None, None)
    assert "`.git`" in (said["landlock"] or "")


def test_the_next_way_is_taken_when_one_does_not_work(tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    sandbox = Sandbox({"PATH": str(broken.parent)}, backends=("namespaces", "landlock"))
    assert sandbox.backend_name(ReadOnly(), tmp_path) == "namespaces"
    with pytest.raises(SandboxUnavailable, match="the sandbox is missing"):
        Sandbox({}, backends=()).prepare(ReadOnly(), tmp_path)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_what_is_writable_stays_the_same_directory(tmp_path: Path, backend: BackendName) -> None:
    """A command swaps a directory above the working directory for a link; the next must not write where it leads."""
    victim = tmp_path / "victim" / "repo"
    victim.mkdir(parents=True)
    (tmp_path / "tmp" / "way").mkdir(parents=True)
    session = Session(_repository(tmp_path / "tmp" / "way"))
    top = session.cwd.parents[2]
    session.policy = workspace().replace(writable_roots=(top / "tmp",))
    hold(session, backend)
    swapped = await _out(session, f"cd {top}/tmp && mv way old && ln -s {top}/victim way && echo swapped")
    if backend == "landlock":
        assert "swapped" in swapped
        assert await session.exec("echo new > new") == (
            f"error: cannot run the command: `{session.cwd}`, a writable directory when the session began, "
            f"now leads to `{top}/victim/repo`"
        )
    else:
        assert "Device or resource busy" in swapped
        assert await _out(session, "echo new > new; cat new") == "new"
        assert await _out(session, f"echo beside > {top}/tmp/way/beside; cat ../beside") == "beside"
        assert await _out(session, "git init -q .. && git -C .. config core.pager ./x; sleep 60; echo made") == ""
    await session.processes.kill_all()
    assert list(victim.iterdir()) == []
    assert not (top / "tmp" / "way" / ".git").exists()


@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_hooks_of_a_repository_without_a_working_tree_cannot_be_planted(
    tmp_path: Path, backend: BackendName
) -> None:
    bare = _repository(tmp_path, "--bare", "--template=")
    before = sorted(path.name for path in bare.iterdir())
    session = Session(bare, workspace())
    hold(session, backend)
    denied = await _out(session, "mv config c; echo x >> config; git config core.pager x")
    assert "Device or resource busy" in denied
    assert "config: Read-only file system" in denied
    assert "could not" in denied
    assert await _out(session, "git rev-parse --is-bare-repository && git hash-object -w --stdin < HEAD") != ""
    # A missing directory can be made, and a hook does not stay in it.
    planted = "mkdir hooks; echo '#!/bin/sh' > hooks/post-update; chmod +x hooks/post-update; sleep 60; echo never"
    assert await _out(session, planted) == ""
    await session.processes.kill_all()
    [line] = session.sandbox.take_notices()
    assert f"`{bare}/hooks/post-update`" in line and line.endswith(", and the command was stopped")
    moved = [path for path in (bare / "hooks").iterdir()]
    assert [path.name.startswith("post-update.moved-") for path in moved] == [True]
    assert sorted(path.name for path in bare.iterdir()) == sorted([*before, "hooks"])


def _git(cwd: Path, command: str) -> None:
    subprocess.run(["git", command], cwd=cwd, capture_output=True, check=False)


# What makes a directory a repository without a working tree, in which the user's own `git status` starts a program.
PLANT = """cd {0} && mkdir objects refs && printf '#!/bin/sh\\ntouch {1}/ran\\n' > {1}/run; chmod +x {1}/run
printf '[core]\\nrepositoryformatversion = 0\\nworktree = {1}\\nfsmonitor = {1}/run\\n' > config
echo 'ref: refs/heads/main' > HEAD; sleep 60; echo never"""


@pytest.mark.parametrize("where", ["work", "work/sub", "top", "top/between"])
@pytest.mark.parametrize("backend", ["bubblewrap", "namespaces"])
async def test_no_directory_becomes_a_repository_without_a_working_tree(
    tmp_path: Path, backend: BackendName, where: str
) -> None:
    planted = tmp_path / where
    work = planted / "between" / "work" if where == "top" else planted / "work" if "top" in where else planted
    work.mkdir(parents=True)
    if where == "work/sub":
        _git(work.parent, "init")
    roots = (tmp_path / "top",) if "top" in where else ()
    session = Session(work, workspace().replace(writable_roots=roots))
    hold(session, backend)
    assert await _out(session, PLANT.format(planted, work)) == ""
    await session.processes.kill_all()
    assert (planted / "config").exists()
    assert not (planted / "HEAD").exists()
    _git(work, "status")
    assert not (work / "ran").exists()
    (planted / "HEAD").write_text("ref: refs/heads/main\n")
    _git(planted, "status")
    assert (work / "ran").exists()

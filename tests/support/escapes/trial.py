"""A trial of a sandbox: every attempt of the table, made inside it, against places and processes made for that.

Only what is made here is ever at stake; everything is removed again, whatever happens.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import NetworkAccess, WorkspaceWrite
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from tests.support.escapes.fixture import Fixture

# What a sandbox under test must deny reading.
UNREADABLE: Final = ("../secret", "**/.env")
SECRETS: Final = (
    *(Path("../home", name) for name in ("auth.json", "config.toml", "*.config.toml", "sessions")),
    Path("../late/auth.json"),
    Path("tools/own/auth.json"),
)
HOME: Final = Path("tools/own")

# What is not held, and why that is known and accepted.
_NO_MOUNTS: Final = "Landlock grants rights by directory and cannot take one back below it"
_NO_ATTRIBUTES: Final = "Landlock has no say over modes, owners, times and attributes"
_NO_NAMES: Final = "Landlock would have to hide the names of everything else too"
_NO_PROCESSES: Final = "without namespaces all processes are seen"
EXCUSED: Final[dict[str, dict[str, str]]] = {
    "bubblewrap": {
        "write into the first process": "it is bubblewrap's own, in the same sandbox and with the same rights",
    },
    "namespaces": {},
    "landlock": {
        "change a mode outside": _NO_ATTRIBUTES,
        "change an owner outside": _NO_ATTRIBUTES,
        "change a time outside": _NO_ATTRIBUTES,
        "set an attribute outside": _NO_ATTRIBUTES,
        "plant a git hook": _NO_MOUNTS,
        "write into the git configuration": _NO_MOUNTS,
        "move the repository away": _NO_MOUNTS,
        "remove a file of the repository": _NO_MOUNTS,
        "change the repository's mode": _NO_MOUNTS,
        "write into the git configuration through a hard link": _NO_MOUNTS,
        "plant a git hook in a nested repository": _NO_MOUNTS,
        "swap a nested repository": _NO_MOUNTS,
        "plant a git hook made without a name": _NO_MOUNTS,
        "exchange the repository with another directory": _NO_MOUNTS,
        "plant a configuration for this program": _NO_MOUNTS,
        "write into our settings": _NO_MOUNTS,
        "replace our settings": _NO_MOUNTS,
        "write into our settings through a hard link": _NO_MOUNTS,
        "remove our settings": _NO_MOUNTS,
        "allow a command by our own rule": _NO_MOUNTS,
        "plant settings for a profile": _NO_MOUNTS,
        "plant a skill among ours": _NO_MOUNTS,
        "change the mode of our home": _NO_MOUNTS,
        "replace our home": _NO_MOUNTS,
        "move away a directory that leads to our home": _NO_MOUNTS,
        "list a directory of secrets": _NO_NAMES,
        "list the sessions of other projects": _NO_NAMES,
        "see a process outside": _NO_PROCESSES,
        "hold a process outside": _NO_PROCESSES,
        "bind a process outside to its processors": _NO_PROCESSES,
        "leave a process behind": _NO_PROCESSES,
        "nothing outside has changed": _NO_ATTRIBUTES,
    },
}
_STAGE: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from tests.support.escapes.run import main; main(sys.argv[1:])"
)
_SECONDS: Final = 120
# How long a process may take that is being killed, on a busy machine.
_DYING_SECONDS: Final = 1


class Outcome(NamedTuple):
    """How one attempt ended: `refusal` is None when it succeeded; `excuse` is why that is accepted, if it is."""

    name: str
    refusal: str | None
    excuse: str | None

    @property
    def is_fault(self) -> bool:
        return self.refusal is None and self.excuse is None


def run_escape_tests(sandbox: Sandbox, network: NetworkAccess = False) -> list[Outcome]:
    """Make every attempt in a workspace-write sandbox without temporary directories; takes a few seconds.

    `sandbox` must deny reading `UNREADABLE` and `SECRETS`, and its home must be `HOME`. Raises `SandboxUnavailable`
    when there is none.
    """
    policy = WorkspaceWrite(network_access=network, exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    with ExitStack() as stack:
        fixture, receiver = stack.enter_context(open_fixture())
        work = Path(fixture.work)
        before = _snapshot(work.parent)
        backend = sandbox.backend_name(policy, work)
        command = PreparedCommand(tuple(stage_argv(fixture)), work, os.environ)
        wrapped = sandbox.wrap(command, policy=policy, cwd=work)
        descriptor = os.open(f"{fixture.outside}/kept", os.O_RDWR)
        os.set_inheritable(descriptor, True)
        try:
            printed, complaint, status = _run(wrapped, fixture)
        finally:
            os.close(descriptor)
            wrapped.discard()
        try:
            endings: dict[str, str | None] = json.loads(printed)
        except ValueError:
            message = complaint[-500:].decode("utf-8", "replace").strip()
            raise SandboxUnavailable(f"the trial ended with status {status}: {message}") from None
        endings |= _seen_outside(endings, fixture, receiver)
        same = _snapshot(work.parent) == before
        endings["nothing outside has changed"] = "as before" if same else None
        excused = EXCUSED.get(backend, {})
        return [Outcome(name, refusal, excused.get(name)) for name, refusal in endings.items()]


def stage_argv(fixture: Fixture, *names: str) -> list[str]:
    """The command line of the process that makes the attempts of these names, or all."""
    return [sys.executable, "-I", "-S", "-c", _STAGE, str(Path(__file__).parents[3]), json.dumps(fixture), *names]


def _run(wrapped: PreparedCommand, fixture: Fixture) -> tuple[bytes, bytes, int]:
    """What was printed on stdout and stderr, and the exit status."""
    with subprocess.Popen(
        wrapped.argv,
        env=wrapped.env,
        cwd=fixture.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=wrapped.fds,
        start_new_session=True,
    ) as running:
        try:
            if running.stdout is not None and select.select([running.stdout], [], [], _SECONDS)[0]:
                running.stdout.readline()
            change_logins(fixture)
            printed, complaint = running.communicate(b"\n", timeout=_SECONDS)
        except BaseException:
            running.kill()
            raise
        return printed, complaint, running.returncode


def change_logins(fixture: Fixture) -> None:
    """As programs do while commands run: one login is replaced in one step, another one appears."""
    Path(fixture.home, ".auth-draft").replace(f"{fixture.home}/auth.json")
    Path(fixture.new_home, "auth.json").write_text("late")


def _seen_outside(endings: dict[str, str | None], fixture: Fixture, receiver: socket.socket) -> dict[str, str | None]:
    """The endings of attempts that only show outside."""
    seen = {"leave a process behind": None if _kill_left(fixture.mark) else "gone"}
    if endings["send a datagram to the machine"] is None:
        try:
            receiver.recv(16)
        except BlockingIOError:
            seen["send a datagram to the machine"] = "nothing arrived"
    return seen


@contextmanager
def open_fixture() -> Generator[tuple[Fixture, socket.socket], None, None]:
    """A place for one trial, with all that waits outside, and what a datagram sent to the machine arrives at.

    Raises `SandboxUnavailable` when this machine has no room for it.
    """
    with ExitStack() as stack:
        try:
            made = _set_up(stack)
        except OSError as error:
            raise SandboxUnavailable(f"the trial cannot be set up: {error}") from error
        yield made


def _set_up(stack: ExitStack) -> tuple[Fixture, socket.socket]:
    usual = os.path.realpath(tempfile.gettempdir())
    # The address of a socket holds 107 bytes, those of the names below included.
    directory = usual if len(os.fsencode(usual)) < 75 else "/tmp"
    top = Path(os.path.realpath(tempfile.mkdtemp(prefix="codex-trial-", dir=directory)))
    stack.callback(shutil.rmtree, top, ignore_errors=True)
    _furnish(top)
    mark = f"codex-{os.getpid()}-{os.urandom(4).hex()}"
    waiting = [sys.executable, "-I", "-S", "-c", "input()", f"victim-{mark}"]
    victim = subprocess.Popen(waiting, stdin=subprocess.PIPE)
    stack.callback(_end, victim)
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    udp.bind(("127.0.0.1", 0))
    udp.setblocking(False)
    for address, socket_type in (
        (f"{top}/socket", socket.SOCK_STREAM),
        (f"\0{mark}", socket.SOCK_STREAM),
        (f"{top}/datagrams", socket.SOCK_DGRAM),
    ):
        listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket_type))
        listener.bind(address)
        if socket_type == socket.SOCK_STREAM:
            listener.listen()
    fixture = Fixture(
        work=str(top / "work"),
        outside=str(top / "outside"),
        secret=str(top / "secret"),
        env_file=str(top / "work" / ".env"),
        home=str(top / "home"),
        new_home=str(top / "late"),
        own=str(top / "work" / HOME),
        victim=victim.pid,
        tcp_port=tcp.getsockname()[1],
        tcp6_port=_port_of_ipv6(stack),
        udp_port=udp.getsockname()[1],
        unix_socket=f"{top}/socket",
        datagrams=f"{top}/datagrams",
        abstract=mark,
        shared=_shared_memory(stack, mark),
        terminal=_terminal(stack),
        mark=mark,
    )
    return fixture, udp


def _port_of_ipv6(stack: ExitStack) -> int:
    with suppress(OSError):
        return stack.enter_context(socket.create_server(("::1", 0), family=socket.AF_INET6)).getsockname()[1]
    return 0


def _shared_memory(stack: ExitStack, name: str) -> str:
    with suppress(OSError):
        shared = Path("/dev/shm", name)
        shared.write_text("shared")
        stack.callback(shared.unlink, missing_ok=True)
        return str(shared)
    return ""


def _terminal(stack: ExitStack) -> str:
    """The name of a terminal that stays open, or nothing where there can be none."""
    with suppress(OSError):
        parent_end, child_end = os.openpty()
        stack.callback(os.close, parent_end)
        stack.callback(os.close, child_end)
        return os.ttyname(child_end)
    return ""


def _furnish(top: Path) -> None:
    own = f"work/{HOME}"
    directories = (
        "work/.git/hooks",
        "work/sub/.git/hooks",
        "work/.codex",
        "outside/empty",
        "secret",
        "home/skills",
        "home/sessions",
        "late",
    )
    for directory in (*directories, f"{own}/skills", f"{own}/rules"):
        (top / directory).mkdir(parents=True)
    contents = ("work/.git/config", "work/sub/.git/HEAD", "work/.env", "outside/kept", "secret/key")
    contents += (f"{own}/config.toml", f"{own}/auth.json")
    contents += ("home/config.toml", "home/work.config.toml", "home/sessions/other.jsonl")
    for name in (*contents, *(f"home/{login}" for login in ("auth.json", ".auth-draft", ".auth-next"))):
        (top / name).write_text(f"{name}\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _snapshot(top: Path) -> dict[str, tuple[int, float, bytes]]:
    """Modes, times and contents of everything that commands must not change."""
    found: dict[str, tuple[int, float, bytes]] = {}
    for name in ("outside", "secret", "work/.git", "work/sub/.git", f"work/{HOME}"):
        for path in [top / name, *(top / name).rglob("*")]:
            known = path.lstat() if path.exists() or path.is_symlink() else None
            if known is not None:
                content = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (known.st_mode, known.st_mtime, content)
    return found


def _kill_left(mark: str) -> bool:
    """Kill what an attempt left behind; whether there was something that was not about to end anyway."""
    marker = f"left-{mark}".encode()
    found = False
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if marker in path.read_bytes():
                found = not _ends(int(path.parent.name)) or found
    return found


def _ends(pid: int) -> bool:
    """Whether a process ends by itself, as one does whose sandbox is being taken down; killed otherwise."""
    watched = os.pidfd_open(pid)
    try:
        if select.select([watched], [], [], _DYING_SECONDS)[0]:
            return True
        signal.pidfd_send_signal(watched, signal.SIGKILL)
        return False
    finally:
        os.close(watched)

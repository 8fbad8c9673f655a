"""A short check of the sandbox on this machine: a process inside it tries what commands must not do.

The targets are created here and removed afterwards. The full table of escape attempts is part of the tests.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.sandbox.linux import BackendName

_DENIED: Final = "private"
_NO_MOUNTS: Final = "Landlock grants rights by directory and cannot take one back below it"
# What a backend is known not to hold; `Backend.shortfall` tells the user before any command runs.
KNOWN_LIMITS: Final[Mapping[BackendName, Mapping[str, str]]] = {
    "landlock": {"write into `.git`": _NO_MOUNTS, "write into `.codex`": _NO_MOUNTS},
}
# As in `backends`: the package is found by its place, and nothing of the user's environment is loaded.
_STAGE: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from codex_py.sandbox.probes import main; main(sys.argv[1])"
)
_SECONDS: Final = 60
_PTRACE_SEIZE, _CLONE_NEWUSER = 0x4206, 0x10000000


class Outcome(NamedTuple):
    """How one probe ended: `refusal` is None when it succeeded, and `limit` is the reason if that is a known limit."""

    name: str
    refusal: str | None
    limit: str | None = None

    @property
    def is_fault(self) -> bool:
        return self.refusal is None and self.limit is None


class Target(NamedTuple):
    """The targets of the probes; `process` has `mark` on its command line and in its environment."""

    work: str
    outside: str
    process: int
    mark: str
    port: int
    unix_socket: str


Probe: TypeAlias = Callable[[Target], object]


def run_probes(env: Mapping[str, str], backend: BackendName) -> list[Outcome]:
    """Run every probe in a workspace-write sandbox of this backend. Raises `SandboxUnavailable` when there is none."""
    policy = WorkspaceWrite(exclude_slash_tmp=True, exclude_tmpdir_env_var=True)
    with open_target() as target:
        work = Path(target.work)
        sandbox = Sandbox(env, deny_read=(_DENIED,), backends=(backend,))
        command = PreparedCommand(tuple(probe_argv(target)), work, env)
        wrapped = sandbox.wrap(command, policy=policy, cwd=work)
        try:
            ran = subprocess.run(
                wrapped.argv,
                env=wrapped.env,
                cwd=work,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                pass_fds=wrapped.fds,
                timeout=_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SandboxUnavailable(f"the probes did not end within {_SECONDS} s") from None
        finally:
            wrapped.discard()
    try:
        refusals: dict[str, str | None] = json.loads(ran.stdout)
    except ValueError:
        message = ran.stderr[-500:].decode("utf-8", "replace").strip()
        raise SandboxUnavailable(f"the probes ended with status {ran.returncode}: {message}") from None
    known = KNOWN_LIMITS.get(backend, {})
    return [Outcome(name, refusal, known.get(name)) for name, refusal in refusals.items()]


def probe_argv(target: Target) -> list[str]:
    """The process that runs the probes and prints a JSON object: why each was refused, null when it was not."""
    return [sys.executable, "-I", "-S", "-c", _STAGE, str(Path(__file__).parents[2]), json.dumps(target)]


@contextmanager
def open_target() -> Generator[Target, None, None]:
    """Make what the probes try to reach. Raises `SandboxUnavailable` when this machine has no room for it."""
    with ExitStack() as stack:
        try:
            target = _make_target(stack)
        except OSError as error:
            raise SandboxUnavailable(f"the probes cannot be set up: {error}") from error
        yield target


def _make_target(stack: ExitStack) -> Target:
    usual = os.path.realpath(tempfile.gettempdir())
    # The address of a Unix socket has 107 bytes.
    parent = usual if len(os.fsencode(usual)) < 75 else "/tmp"
    top = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="codex-probes-", dir=parent)))
    for name in ("work/.git/config", "work/.codex/config.toml", f"work/{_DENIED}/key", "outside/file"):
        Path(top, name).parent.mkdir(parents=True, exist_ok=True)
        Path(top, name).write_text("probe\n")
    mark = f"probe-{os.getpid()}-{os.urandom(8).hex()}"
    argv = [sys.executable, "-I", "-S", "-c", "input()", mark]
    process = stack.enter_context(subprocess.Popen(argv, stdin=subprocess.PIPE, env={"PROBE_SECRET": mark}))
    stack.callback(process.kill)
    tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
    unix = stack.enter_context(socket.socket(socket.AF_UNIX))
    unix.bind(f"{top}/socket")
    unix.listen()
    return Target(f"{top}/work", f"{top}/outside", process.pid, mark, tcp.getsockname()[1], f"{top}/socket")


def main(target: str) -> None:
    """Run inside the sandbox: try every probe and print how each ended."""
    values = Target(*json.loads(target))
    print(json.dumps({name: _refusal(probe, values) for name, probe in PROBES.items()}))


def _refusal(probe: Probe, target: Target) -> str | None:
    try:
        probe(target)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    return None


def _append(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("probe\n")


def _outside_process(target: Target) -> int:
    """In a process namespace of its own, the number may be that of another process, or of none."""
    command = Path(f"/proc/{target.process}/cmdline")
    if os.access(command, os.R_OK) and target.mark.encode() not in command.read_bytes():
        raise ProcessLookupError(errno.ESRCH, "another process")
    return target.process


def _read_environment(target: Target) -> None:
    if target.mark.encode() not in Path(f"/proc/{_outside_process(target)}/environ").read_bytes():
        raise PermissionError(errno.EACCES, "empty")


def _call(name: str, *arguments: int | bytes | None) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _mount(target: Target) -> None:
    """Of a type that does not exist, which the kernel looks up once it has checked the right to mount."""
    try:
        _call("mount", b"none", os.fsencode(target.work), b"codex-probe", 0, None)
    except OSError as error:
        if error.errno != errno.ENODEV:
            raise


def _connect(family: int, address: tuple[str, int] | str) -> None:
    with socket.socket(family) as made:
        made.settimeout(2)
        made.connect(address)


PROBES: Final[Mapping[str, Probe]] = {
    "write a file outside": lambda target: _append(f"{target.outside}/new"),
    "write a file outside through /proc": lambda target: _append(f"/proc/self/root{target.outside}/file"),
    "write into `.git`": lambda target: _append(f"{target.work}/.git/config"),
    "write into `.codex`": lambda target: _append(f"{target.work}/.codex/config.toml"),
    "read a denied file": lambda target: Path(target.work, _DENIED, "key").read_bytes(),
    "read a denied file through /proc": lambda target: Path(f"/proc/self/root{target.work}/{_DENIED}/key").read_bytes(),
    "read a secret from a process outside": _read_environment,
    "signal a process outside": lambda target: os.kill(_outside_process(target), 0),
    "trace a process outside": lambda target: _call("ptrace", _PTRACE_SEIZE, _outside_process(target), None, None),
    "connect to a port of this machine": lambda target: _connect(socket.AF_INET, ("127.0.0.1", target.port)),
    "connect to a Unix socket": lambda target: _connect(socket.AF_UNIX, target.unix_socket),
    "mount a file system": _mount,
    "make a user namespace": lambda _: _call("unshare", _CLONE_NEWUSER),
}

"""Command lines of `codex-py` that skip its start: a program that has loaded everything plays each in a copy of itself.

So do those of the drivers of the Python SDKs, whose libraries take longer to load than their tests to run.

The copy is a process like any other: arguments, environment, folder, standard files, terminal, signals and status are
its own. Only what Python itself would read before the first line of ours is not, and the imports are done: what is
about those is started cold, and in a run without workers everything is. The parent of the tasks of a batch is a copy
too.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from tests.support.home import BIN
from tests.support.warm_client import ask, can_be_played

# The folder where the programs listen: told to the workers of a run by their environment.
_DIRECTORY: Final = "CODEX_PY_WARM"


class WarmProcess:
    """A command line being played, as far as the tests need what `Popen` offers."""

    def __init__(self, program: socket.socket, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self.stderr: IO[bytes] | None = None
        self._program = program

    def poll(self) -> int | None:
        """The status, negative for the signal that ended it; None as long as it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end. Raise `subprocess.TimeoutExpired`."""
        if self.returncode is None:
            self._program.settimeout(timeout)
            try:
                said = self._program.recv(64)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired("codex-py", timeout or 0) from None
            self._program.close()
            assert said, "the program that plays the command lines has died"
            self.returncode = int(said)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def can_play(env: Mapping[str, str]) -> bool:
    """Whether there is such a program, and the environment says nothing that Python reads when it starts."""
    return _DIRECTORY in os.environ and can_be_played(env)


def warm_path(env: Mapping[str, str]) -> dict[str, str]:
    """The environment with a `PATH` where `codex-py` starts warm; as it is where nothing can be played."""
    directory = os.environ.get(_DIRECTORY)
    return {**env, "PATH": f"{directory}/bin:{env['PATH']}"} if directory else dict(env)


def warm_command() -> str:
    """The path of `codex-py`, for programs that start it by that; the one that starts warm where there is one."""
    directory = os.environ.get(_DIRECTORY)
    return f"{directory}/bin/codex-py" if directory else str(BIN / "codex-py")


def play(argv: Sequence[str], stdin: int | IO[bytes], stdout: int, *, env: Mapping[str, str], cwd: Path) -> WarmProcess:
    """What `Popen` does with the same arguments; stderr is a pipe.

    A driver's name is that of its file. With `no_namespaces.py` before it, a command line gets that filter.
    """
    pipes: list[IO[bytes] | None] = []
    theirs: list[int] = []
    for wanted, reads in ((stdin, False), (stdout, True), (subprocess.PIPE, True)):
        if wanted == subprocess.PIPE:
            reader, writer = os.pipe()
            pipes.append(os.fdopen(reader, "rb") if reads else os.fdopen(writer, "wb"))
            theirs.append(writer if reads else reader)
        else:
            pipes.append(None)
            no_file = wanted == subprocess.DEVNULL
            theirs.append(os.open(os.devnull, os.O_RDWR) if no_file else os.dup(_number(wanted)))
    try:
        process = begin(argv, theirs, env=env, cwd=cwd)
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    process.stdin, process.stdout, process.stderr = pipes
    return process


def begin(
    argv: Sequence[str], files: Sequence[int], *, env: Mapping[str, str], cwd: Path, terminal: bool = False
) -> WarmProcess:
    """Play a command line in a session of its own, with the files as its standard files, or with a `terminal`."""
    address = _address(Path(os.environ[_DIRECTORY]), Path(argv[0]).parent.name == "sdk")
    return WarmProcess(*ask(address, argv, files, env=env, cwd=str(cwd), terminal=terminal))


def _address(directory: Path, drivers: bool) -> str:
    return str(directory / ("drivers" if drivers else "codex-py"))


def _number(file: int | IO[bytes]) -> int:
    return file if isinstance(file, int) else file.fileno()


@contextmanager
def warm_starts(directory: Path) -> Generator[None, None, None]:
    """Have command lines played for this process and those it starts; the folder is for the sockets."""
    programs = [
        _program(_address(directory, drivers=False), "codex_py"),
        _program(_address(directory, drivers=True), "acp", "openai_codex", "openai_codex_sdk"),
    ]
    write_client(directory / "bin/codex-py")
    os.environ[_DIRECTORY] = str(directory)
    try:
        yield
    finally:
        del os.environ[_DIRECTORY]
        # They end with their input.
        for program in programs:
            program.communicate()


def write_client(path: Path) -> None:
    """Write the command that has the program of its name, which listens beside its directory, play it."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable} -IS\n" + Path(__file__).with_name("warm_client.py").read_text())
    path.chmod(0o755)


def _program(address: str, *packages: str) -> subprocess.Popen[bytes]:
    """A program that will have loaded the packages."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen(64)
        file = Path(__file__).with_name("warm_program.py")
        return subprocess.Popen(
            [sys.executable, str(file), str(listener.fileno()), str(BIN), *packages],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )

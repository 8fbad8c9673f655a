"""Starts one command in its own session, with its output on one pipe or pseudo-terminal.

On a terminal, a small Python program starts the command, inside the sandbox if there is one. It makes the terminal the
session's controlling terminal, so that Ctrl-C reaches only this command: only the leader of a session can do that, and
forking this process to do it would cost more.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.paths import is_directory
from codex_py.protocol.command import PreparedCommand

ROWS: Final = 24
COLUMNS: Final = 80

_STAGE: Final = """\
import fcntl, os, signal, sys, termios
if os.getsid(0) != os.getpid():
    os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    os.write(2, f"{sys.argv[1]}: {error.strerror}\\n".encode())
    os._exit(127)
"""


def on_terminal(argv: Sequence[str]) -> tuple[str, ...]:
    """`argv` started as the leader of a session that owns the terminal on its standard input."""
    return (sys.executable, "-I", "-S", "-c", _STAGE, *argv)


def set_size(terminal: int, rows: int, columns: int) -> None:
    """Set the size of a terminal; the programs on it get SIGWINCH."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def open_terminal() -> tuple[int, int]:
    """A new terminal: the end this program reads and writes (not blocking), and the command's end."""
    parent_end, child_end = os.openpty()
    try:
        set_size(child_end, ROWS, COLUMNS)
        os.set_blocking(parent_end, False)
    except OSError:
        os.close(parent_end)
        os.close(child_end)
        raise
    return parent_end, child_end


_F_SETPIPE_SZ: Final = 1031  # Linux; fcntl.F_SETPIPE_SZ is missing elsewhere
_PIPE_BYTES: Final = 1024 * 1024


class CommandSpec(PreparedCommand):
    """A command for the table of a session.

    `outside` says that there is no sandbox, whatever the session's policy; `read_only` that it can write nothing.
    `line` is what people are shown of it, `call_id` the call that started it.
    """

    tty: bool = False
    outside: bool = False
    line: str = ""
    read_only: bool = False
    call_id: str = ""


class Child:
    """A started process: `output` is the descriptor to read (and, for a terminal, to write), not blocking.

    `capacity` is how many bytes can wait in it unread, 0 when unknown.
    """

    def __init__(self, process: subprocess.Popen[bytes], output: int, *, sandboxed: bool, capacity: int = 0) -> None:
        self.output = output
        self.capacity = capacity
        self.pid = process.pid
        self._process = process
        self._sandboxed = sandboxed

    def reap(self) -> int | None:
        """The exit code, 128+n for a death by signal n; None while the process runs."""
        status = self._process.poll()
        return status if status is None or status >= 0 else 128 - status

    def wait(self) -> int:
        """Block until the process ends; for threads."""
        self._process.wait()
        return self.reap() or 0

    def kill(self) -> None:
        """SIGKILL the process and its group."""
        self._signal_group(self.pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """SIGINT the command, stopped or not: its group, or the one inside its sandbox, whose keeper must survive."""
        inner = _only_child(self.pid) if self._sandboxed else None
        for number in (signal.SIGINT, signal.SIGCONT):
            self._signal_group(inner or self.pid, number)

    def _signal_group(self, group: int, number: int) -> None:
        # Not after reaping: the number may belong to somebody else by then.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)


def start_child(spec: CommandSpec, extra_env: Mapping[str, str]) -> Child:
    """Start the command; raise `ToolError` when the system refuses. The spec's callbacks are the caller's to call."""
    try:
        return _start_on_terminal(spec, extra_env) if spec.tty else _start_on_pipe(spec, extra_env)
    except (OSError, ValueError) as error:
        raise ToolError(_why_not(spec, error)) from error


def _start_on_pipe(spec: CommandSpec, extra_env: Mapping[str, str]) -> Child:
    parent_end, child_end = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    capacity = 0
    try:
        with suppress(OSError):  # a roomier pipe saves wake-ups; the user's pipe quota may not allow it
            capacity = fcntl.fcntl(child_end, _F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(parent_end, False)
        process = _popen(spec, extra_env, stdin=subprocess.DEVNULL, output=child_end)
    except BaseException:
        os.close(parent_end)
        raise
    finally:
        os.close(child_end)
    return Child(process, parent_end, sandboxed=spec.sandboxed, capacity=capacity)


def _start_on_terminal(spec: CommandSpec, extra_env: Mapping[str, str]) -> Child:
    parent_end, child_end = open_terminal()
    try:
        process = _popen(spec, extra_env, stdin=child_end, output=child_end)
    except BaseException:
        os.close(parent_end)
        raise
    finally:
        os.close(child_end)
    return Child(process, parent_end, sandboxed=spec.sandboxed)


def _popen(spec: CommandSpec, extra_env: Mapping[str, str], *, stdin: int, output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        spec.argv,
        cwd=spec.cwd,
        env={**spec.env, **extra_env},
        stdin=stdin,
        stdout=output,
        stderr=output,
        pass_fds=spec.fds,
        start_new_session=True,
    )


def _only_child(pid: int) -> int | None:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return None
    return int(children[0]) if children else None


def _why_not(spec: CommandSpec, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError):
        return "cannot start the command: it has a NUL or a lone surrogate, which no argument can hold"
    if error.errno == errno.E2BIG:
        return "cannot start the command: it is longer than the system allows; put the text into a file first"
    if not is_directory(spec.cwd):
        return f"cannot start the command: working directory `{spec.cwd}` does not exist"
    return f"cannot start `{spec.argv[0]}`: {(error.strerror or str(error)).lower()}"

"""Starts git and reads its answers. The callers decide about its settings and its sandbox."""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from codex_py.errors import UserError
from codex_py.protocol.command import PreparedCommand
from codex_py.text.sanitize import sanitize_line

_MAX_REASON: Final = 300
_CHUNK: Final = 1 << 16
# `read` takes no more than the line, so that what follows the last one is left for git.
_READ_LINES: Final = "newline='\n'\nwhile IFS= read -r line; do eval \"$line\"; done"


class GitOutput(NamedTuple):
    """The result of a git command."""

    status: int
    out: bytes
    complaint: str


def run_git(command: PreparedCommand, *, seconds: float, stdin: bytes = b"") -> GitOutput:
    """Run a git to its end. Raises `UserError` when it cannot be started or does not end in time."""
    with _start(command, stdin=subprocess.PIPE if stdin else subprocess.DEVNULL) as git:
        try:
            out, err = git.communicate(stdin or None, timeout=seconds)
        except BaseException as error:
            _kill(git, error, seconds)
            raise
    return GitOutput(git.returncode, out, _reason(err))


def shell_argv(git: Sequence[str]) -> tuple[str, ...]:
    """The command line of a `GitShell`, from that of git up to the name of a command."""
    return ("/bin/sh", "-c", _READ_LINES, "sh", *git)


class GitShell:
    """A shell that runs one git after the other, so that only one sandbox is set up for all of them.

    `command` has a command line from `shell_argv`. Raises `UserError` when it cannot be started. `close` it at the end.
    """

    def __init__(self, command: PreparedCommand) -> None:
        self._command = command
        try:
            self._process = _start(command, stdin=subprocess.PIPE)
        except BaseException:
            command.cleanup()
            raise

    @property
    def is_open(self) -> bool:
        """Whether it can be asked for more."""
        return self._process.returncode is None

    def ask(self, words: Sequence[str], *, seconds: float, stdin: bytes = b"") -> GitOutput:
        """Run a git with these options, command and arguments. One with `stdin` is the last: it reads to the end.

        Where the shell ends without an answer, the status is not 0. Raises `UserError` after `seconds`.
        """
        # Nothing that git prints has this in it: nobody else knows it before the question is asked.
        mark = os.urandom(16).hex()
        end = f"{mark}.".encode()
        line = os.fsencode(_question(words, mark, reads=bool(stdin)))
        try:
            if stdin:
                out, err = self._process.communicate(line + stdin, timeout=seconds)
            else:
                out, err = self._exchange(line, end, seconds)
        except BaseException as error:
            _kill(self._process, error, seconds)
            raise
        # The list of the files of a large repository has megabytes, and is copied once.
        at = out.rfind(f"{mark}:".encode())
        if at < 0 or not out.endswith(end):
            return GitOutput(self._process.returncode or 1, b"", _reason(err))
        _, status, complaint = bytes(out[at : -len(end)]).split(b":", 2)
        return GitOutput(int(status), bytes(memoryview(out)[:at]), _reason(complaint))

    def kill(self) -> None:
        """End the shell and its git, from another thread; the question that waits is answered with a status."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def never_began(self) -> bool:
        """As `PreparedCommand.never_began`, of the shell."""
        return self._command.never_began(self._process.returncode)

    def close(self) -> None:
        """End the shell and clean up after it."""
        try:
            with self._process:
                pass
        finally:
            self._command.cleanup()

    def _exchange(self, line: bytes, end: bytes, seconds: float) -> tuple[bytes | bytearray, bytes]:
        """The output up to `end`; where the shell ends before that, also the complaint of its sandbox."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        with suppress(BrokenPipeError):  # why it has ended is yet to be read
            os.write(stdin.fileno(), line)
        poll, until = select.poll(), time.monotonic() + seconds
        poll.register(stdout.fileno(), select.POLLIN)
        out = bytearray()
        while not out.endswith(end):
            if not poll.poll(max(0.0, until - time.monotonic()) * 1000):
                raise subprocess.TimeoutExpired("git", seconds)
            chunk = os.read(stdout.fileno(), _CHUNK)
            if not chunk:
                return self._process.communicate(timeout=max(0.0, until - time.monotonic()))
            out += chunk
        return out, b""


def _question(words: Sequence[str], mark: str, *, reads: bool) -> str:
    """The line for a `GitShell`: prints what git prints, then the mark, the status, the complaint and the mark."""
    quoted = " ".join(shlex.quote(word).replace("\n", "'\"$newline\"'") for word in words)
    run = f'"$@" {quoted} {"" if reads else "</dev/null"} 2>&1 >&3 3>&-'
    return f'{{ complaint=$({run}); }} 3>&1; printf "%s:%s:%s%s." {mark} "$?" "$complaint" {mark}\n'


def _start(command: PreparedCommand, *, stdin: int) -> subprocess.Popen[bytes]:
    try:
        # In its own process group, so that what it starts is killed with it.
        return subprocess.Popen(
            command.argv,
            cwd=command.cwd,
            env=dict(command.env),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=command.fds,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserError(f"cannot run git: {reason.lower()}") from error
    finally:
        command.close_fds()


def _kill(process: subprocess.Popen[bytes], error: BaseException, seconds: float) -> None:
    """Kill a process that was not waited for because of an error. Raises `UserError` where it took too long."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if isinstance(error, subprocess.TimeoutExpired):
        raise UserError(f"git took longer than {seconds:g} s") from None


def _reason(stderr: bytes) -> str:
    lines = os.fsdecode(stderr).strip().splitlines() or ["no reason"]
    fatal = next((line for line in lines if line.startswith("fatal: ")), lines[-1])
    return sanitize_line(fatal.removeprefix("fatal: "))[:_MAX_REASON]

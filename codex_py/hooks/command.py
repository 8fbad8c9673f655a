"""Runs the command of one hook with its input, and makes sure that it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.process.sweep import MARKER, helper_prefix, kill_marked
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import uuid7
from codex_py.text.overwriting import show_overwritten

MAX_OUTPUT: Final = 1024 * 1024
# After a command has ended, its pipes are read for so long: a program it left behind may keep them open.
_GRACE_SECONDS: Final = 0.2
_READ_BYTES: Final = 64 * 1024


class HookResult(NamedTuple):
    """How a command ended. `error` says why it was stopped or did not start; there is no exit code then.

    With `never_began` only its sandbox has run, which could not be set up.
    """

    exit_code: int | None
    stdout: bytes = b""
    stderr: bytes = b""
    error: str = ""
    never_began: bool = False


async def run_to_end(start: PreparedCommand, payload: bytes, *, seconds: float) -> HookResult:
    """Run a command with `payload` on its stdin, in a session of its own.

    It is killed with all it has started after `seconds`, when it prints more than 1 MiB, and on cancellation.
    """
    try:
        return await _run(start, payload, seconds)
    finally:
        start.cleanup()


async def _run(start: PreparedCommand, payload: bytes, seconds: float) -> HookResult:
    mark = f"{helper_prefix()}{uuid7()}"
    try:
        process = _started(start, mark)
    except (OSError, ValueError) as error:
        return HookResult(None, error=f"cannot be started: {_why_not(error, start.cwd)}")
    finally:
        start.close_fds()
    pipes = _Pipes(process, payload)
    problem = "was stopped"
    try:
        async with asyncio.timeout(seconds):
            problem = await pipes.end()
    except TimeoutError:
        problem = f"did not end within {seconds:g} s and was killed"
    finally:
        pipes.close()
        if problem:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            await _settled(process, mark)
    stdout, stderr = show_overwritten(bytes(pipes.stdout)), show_overwritten(bytes(pipes.stderr))
    if problem:
        return HookResult(None, stdout, stderr, problem)
    status = process.returncode
    code = 128 - status if status < 0 else status
    return HookResult(code, stdout, stderr, never_began=start.never_began(code))


def _why_not(error: OSError | ValueError, cwd: Path) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not cwd.is_dir():
        return f"the directory `{cwd}` is gone"
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return reason.lower()


def _started(start: PreparedCommand, mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        start.argv,
        cwd=start.cwd,
        env={**start.env, MARKER: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=start.fds,
        start_new_session=True,
    )


async def _settled(process: subprocess.Popen[bytes], mark: str) -> None:
    """Wait until a killed command is gone, with the processes that had left its group."""

    def sweep() -> None:
        process.wait()
        kill_marked(mark)

    sweeping = asyncio.ensure_future(asyncio.to_thread(sweep))
    try:
        await asyncio.shield(sweeping)
    except asyncio.CancelledError:
        await asyncio.wait([sweeping])
        raise


class _Pipes:
    """The three pipes of a running command, served by the loop."""

    def __init__(self, process: subprocess.Popen[bytes], payload: bytes) -> None:
        self.stdout = bytearray()
        self.stderr = bytearray()
        self._process = process
        self._payload = memoryview(payload)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        assert process.stdin and process.stdout and process.stderr  # all three are pipes
        self._stdin = process.stdin
        self._open = {process.stdout.fileno(): self.stdout, process.stderr.fileno(): self.stderr}
        self._watched: int | None = None
        for descriptor in (self._stdin.fileno(), *self._open):
            os.set_blocking(descriptor, False)
        for descriptor in tuple(self._open):
            self._loop.add_reader(descriptor, self._read, descriptor)
        self._loop.add_writer(self._stdin.fileno(), self._write)
        self._watch_exit()

    async def end(self) -> str:
        """Wait for the end; "" when the command has ended, else why it must be killed."""
        return await self._ended

    def close(self) -> None:
        """Close every descriptor."""
        self._stop_writing()
        for descriptor in tuple(self._open):
            self._stop_reading(descriptor)
        self._stop_watching()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _watch_exit(self) -> None:
        try:
            self._watched = os.pidfd_open(self._process.pid)
        except (AttributeError, OSError):
            # This system has no pidfd: a thread waits, and ends with the process.
            waiting = self._loop.run_in_executor(None, self._process.wait)
            waiting.add_done_callback(lambda _: self._exited())
            return
        self._loop.add_reader(self._watched, self._reap)

    def _reap(self) -> None:
        if self._process.poll() is not None:
            self._stop_watching()
            self._exited()

    def _exited(self) -> None:
        if not self._open:
            self._finish("")
        else:
            self._loop.call_later(_GRACE_SECONDS, self._finish, "")

    def _finish(self, problem: str) -> None:
        if not self._ended.done():
            self._ended.set_result(problem)

    def _read(self, descriptor: int) -> None:
        try:
            chunk = os.read(descriptor, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        captured = self._open[descriptor]
        captured += chunk
        if not chunk:
            self._stop_reading(descriptor)
            if not self._open and self._process.returncode is not None:
                self._finish("")
        elif len(captured) > MAX_OUTPUT:
            del captured[MAX_OUTPUT:]
            self._finish(f"printed more than {MAX_OUTPUT // (1024 * 1024)} MiB and was killed")

    def _write(self) -> None:
        try:
            written = os.write(self._stdin.fileno(), self._payload[:_READ_BYTES])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:  # it does not read its input, which is allowed
            written = len(self._payload)
        self._payload = self._payload[written:]
        if not self._payload:
            self._stop_writing()

    def _stop_writing(self) -> None:
        if not self._stdin.closed:
            self._loop.remove_writer(self._stdin.fileno())
            with suppress(OSError):
                self._stdin.close()

    def _stop_reading(self, descriptor: int) -> None:
        del self._open[descriptor]
        self._loop.remove_reader(descriptor)

    def _stop_watching(self) -> None:
        if self._watched is not None:
            self._loop.remove_reader(self._watched)
            os.close(self._watched)
            self._watched = None

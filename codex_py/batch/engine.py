"""What runs the commands of tasks: the protocol of engines, and the one that starts a process for each.

A command is a `codex-py` command line; its stdout is read line by line, and its stderr is a file beside its artifacts.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, Protocol

from codex_py.errors import UserError
from codex_py.text.files import os_reason

_STOP_SECONDS: Final = 8.0
_START_SECONDS: Final = 0.5
_LINE_BYTES: Final = 1024 * 1024
_PR_SET_PDEATHSIG: Final = 1
# Modules of the current directory are not ours: `-P`.
WORKER: Final = (sys.executable, "-P", "-m", "codex_py.cli.worker")
OnLine = Callable[[bytes], None]


class Job(NamedTuple):
    """A command line of `codex-py`, with files for its stdin and its messages."""

    arguments: tuple[str, ...]
    cwd: Path
    stdin: Path | None
    log: Path


class Engine(Protocol):
    """Runs jobs; as many at once as it is asked to."""

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        """Run a job to its end; gives its exit status, or minus the signal that ended it. Cancelling stops it.

        Without `on_line` its stdout goes where its stderr goes. Raises `UserError` where it cannot be started.
        """
        ...

    async def aclose(self) -> None:
        """Stop everything that still runs."""
        ...


class GatedEngine:
    """Lets only as many jobs start at once as there are cores: more would take time and memory from each other.

    A job has started with its first line, or half a second after its turn to start: then it may wait for a server.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
        self._free = asyncio.Semaphore(cores)

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        """As `Engine` says. A job without `on_line` does not wait."""
        if on_line is None:
            return await self._engine.run(job, None)
        await self._free.acquire()
        is_starting = True

        def note_start() -> None:
            nonlocal is_starting
            if is_starting:
                is_starting = False
                self._free.release()

        def note_line(line: bytes) -> None:
            note_start()
            on_line(line)

        timer = asyncio.get_running_loop().call_later(_START_SECONDS, note_start)
        try:
            return await self._engine.run(job, note_line)
        finally:
            timer.cancel()
            note_start()

    async def aclose(self) -> None:
        """As `Engine` says."""
        await self._engine.aclose()


class ProcessEngine:
    """Starts a process for each job, which ends with this one."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = dict(env)

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        """As `Engine` says."""
        command = (*WORKER, str(os.getpid()), *job.arguments)
        try:
            with (job.stdin or Path(os.devnull)).open("rb") as stdin, job.log.open("ab") as log:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    cwd=job.cwd,
                    env=self._env,
                    stdin=stdin,
                    stdout=asyncio.subprocess.PIPE if on_line else log,
                    stderr=log,
                    start_new_session=True,
                    limit=_LINE_BYTES,
                )
        except OSError as error:
            raise UserError(f"cannot start a process: {os_reason(error)}") from error
        try:
            if on_line is not None and process.stdout is not None:
                await read_lines(process.stdout, on_line)
            return await process.wait()
        finally:
            if process.returncode is None:
                await stop_process(process.pid, process.wait)

    async def aclose(self) -> None:
        """As `Engine` says: each job was stopped when its task was cancelled."""


async def read_lines(stream: asyncio.StreamReader, on_line: OnLine) -> None:
    """Pass on each line of a job; lines beyond a megabyte are left out."""
    while True:
        try:
            line = await stream.readline()
        except ValueError:
            continue
        if not line:
            return
        on_line(line)


async def stop_process(pid: int, wait: Callable[[], object]) -> None:
    """End a process as a supervisor does: a request, then force. It stops its own children."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    waiting = asyncio.ensure_future(_awaited(wait))
    done, _ = await asyncio.wait([waiting], timeout=_STOP_SECONDS)
    if not done:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        await waiting


async def _awaited(wait: Callable[[], object]) -> None:
    result = wait()
    if asyncio.iscoroutine(result):
        await result


def end_with(has_parent: Callable[[], bool] | Literal[False]) -> None:
    """Be asked to stop when the parent ends. Leave at once if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if not (has_parent and has_parent()):
        os._exit(128 + signal.SIGTERM)

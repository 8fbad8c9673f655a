"""The engine of this machine: runs are forked from a parent that has loaded the program, which knows no task.

The parent is the fork server of the standard library. It has no threads, runs nothing itself, and each run closes all
files that it inherits. Where it does not work, and outside of Linux, each run is a plain process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from types import ModuleType
from typing import Final, NamedTuple, NoReturn

from codex_py.batch.engine import Engine, GatedEngine, Job, OnLine, ProcessEngine, read_lines, stop_process
from codex_py.batch.worker import can_be_warm, end_with, safe_environment, warm_up

_BEGAN: Final = b"began\n"
_LAST_LINES_SECONDS: Final = 2.0


def open_local_engine(env: Mapping[str, str]) -> Engine:
    """The engine for this machine; `env` is the environment of its processes."""
    plain = ProcessEngine(env)
    return GatedEngine(WarmEngine(env, plain) if can_be_warm() else plain)


class WarmEngine:
    """Runs jobs in forks of a warm parent; with `plain` where that fails."""

    def __init__(self, env: Mapping[str, str], plain: Engine) -> None:
        self._env = dict(env)
        self._plain = plain
        self._works = True
        self._context = multiprocessing.get_context("forkserver")
        warm_up()

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        """As `Engine` says."""
        if self._works:
            status = await self._fork(job, on_line)
            if status is not None:
                return status
            self._works = False
        return await self._plain.run(job, on_line)

    async def aclose(self) -> None:
        """As `Engine` says: each job was stopped when its task was cancelled, and the parent ends with this process."""

    async def _fork(self, job: Job, on_line: OnLine | None) -> int | None:
        """The status of a job; None where it could not be started."""
        reader, writer = self._context.Pipe(duplex=False)
        start = _Start(
            arguments=job.arguments,
            cwd=str(job.cwd),
            stdin=str(job.stdin or os.devnull),
            log=str(job.log),
            shows_lines=on_line is not None,
            env=self._env,
        )
        process = self._context.Process(target=_play, args=(start, writer), daemon=True)
        with reader:
            try:
                with _without_script(), safe_environment():
                    process.start()
            except (OSError, EOFError, RuntimeError):
                return None
            finally:
                writer.close()
            return await _follow(process, os.dup(reader.fileno()), on_line)


@contextmanager
def _without_script() -> Generator[None]:
    """Hide the script that this process was started with: the library would run it once more in each fork."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


async def _follow(process: ForkServerProcess, descriptor: int, on_line: OnLine | None) -> int | None:
    """Read the lines of a job to its end."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    began = False

    def note(line: bytes) -> None:
        nonlocal began
        if not began:
            began = line == _BEGAN
        elif on_line is not None:
            on_line(line)

    try:
        stream = asyncio.StreamReader()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stream), os.fdopen(descriptor, "rb", buffering=0)
        )
        reading = asyncio.create_task(read_lines(stream, note))
        try:
            await ended.wait()
            # What it has started may hold its output open.
            await asyncio.wait([reading], timeout=_LAST_LINES_SECONDS)
        finally:
            reading.cancel()
            transport.close()
    finally:
        if not ended.is_set() and process.pid is not None:
            await stop_process(process.pid, ended.wait)
        loop.remove_reader(process.sentinel)
    return process.exitcode if began else None


class _Start(NamedTuple):
    """All that a fork needs to become the process of a job."""

    arguments: tuple[str, ...]
    cwd: str
    stdin: str
    log: str
    shows_lines: bool
    env: dict[str, str]


def _play(start: _Start, writer: Connection) -> NoReturn:
    """Be the process of a job, as if it had been started by itself."""
    status = 1
    try:
        os.setsid()
        parent = multiprocessing.parent_process()
        end_with(parent is not None and parent.is_alive)
        os.write(writer.fileno(), _BEGAN)
        stdin = os.open(start.stdin, os.O_RDONLY)
        log = os.open(start.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for descriptor, target in ((stdin, 0), (writer.fileno() if start.shows_lines else log, 1), (log, 2)):
            os.dup2(descriptor, target)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.chdir(start.cwd)
        os.environ.clear()
        os.environ.update(start.env)
        time.tzset()
        sys.argv = ["codex-py", *start.arguments]
        sys.stdin = sys.__stdin__ = _text(0, "r", "surrogateescape")
        sys.stdout = sys.__stdout__ = _text(1, "w", "surrogateescape")
        sys.stderr = sys.__stderr__ = _text(2, "w", "backslashreplace")
        # Its import prepares for signals, so it comes last.
        import_module("codex_py.cli.entry").main()
    finally:
        os._exit(status)


def _text(descriptor: int, mode: str, errors: str) -> TextIOWrapper:
    """A standard file as Python opens it."""
    raw = os.fdopen(descriptor, f"{mode}b", closefd=False)
    return TextIOWrapper(raw, "utf-8", errors, "\n", line_buffering=descriptor == 2)

"""The engine of this machine: runs are forked from a parent that has loaded the program, which knows no task.

The parent is the fork server of the standard library. It has no threads, runs nothing itself, and each run closes all
files that it inherits. Where it does not work, and outside of Linux, each run is a plain process.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from types import ModuleType
from typing import Final, NamedTuple, NoReturn

from codex_py.batch.engine import Engine, GatedEngine, Job, OnLine, ProcessEngine, end_with, read_lines, stop_process

# In the environment of the parent: the directory with its socket, which it removes when it ends.
SOCKETS_VARIABLE: Final = "CODEX_PY_BATCH_SOCKETS"
_PRELOADED: Final = "codex_py.cli.preloaded"
_SAFE_PATH: Final = "PYTHONSAFEPATH"
_BEGAN: Final = b"began\n"
_LAST_LINES_SECONDS: Final = 2.0


def open_local_engine(env: Mapping[str, str], run_task: Callable[[], NoReturn]) -> Engine:
    """The engine for this machine; `env` is the environment of its processes.

    `run_task` is called in a fork, as the program with the arguments in `sys.argv`.
    """
    plain = ProcessEngine(env)
    return GatedEngine(WarmEngine(env, run_task, plain) if _can_be_warm() else plain)


class WarmEngine:
    """Runs jobs in forks of a warm parent; with `plain` where that fails."""

    def __init__(self, env: Mapping[str, str], run_task: Callable[[], NoReturn], plain: Engine) -> None:
        self._env = dict(env)
        self._run_task = run_task
        self._plain = plain
        self._works = True
        self._context = multiprocessing.get_context("forkserver")
        _warm_up()

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
        process = self._context.Process(target=_play, args=(start, writer, self._run_task), daemon=True)
        with reader:
            try:
                with _without_script(), _safe_environment():
                    process.start()
            except (OSError, EOFError, RuntimeError):
                return None
            finally:
                writer.close()
            return await _follow(process, os.dup(reader.fileno()), on_line)


def _warm_up() -> None:
    """Start the parent, which loads the program meanwhile, unless it runs."""
    if not _can_be_warm():
        return
    forkserver.set_forkserver_preload([_PRELOADED])
    with _safe_environment():
        try:
            forkserver.ensure_running()
        except OSError:
            # A path that is too long for a socket, for one; tasks are plain processes then.
            shutil.rmtree(os.environ[SOCKETS_VARIABLE], ignore_errors=True)


def _can_be_warm() -> bool:
    """Whether tasks can be forked here."""
    # The library starts Python with the current directory on its path, unless a variable says otherwise.
    return sys.platform == "linux" and (sys.flags.safe_path or not sys.flags.ignore_environment)


@contextmanager
def _safe_environment() -> Generator[None]:
    """The environment in which the library may start its Python programs.

    They load no modules from the current directory, which may be a project of others, and know what to remove.
    """
    own = {_SAFE_PATH: "1", SOCKETS_VARIABLE: util.get_temp_dir()}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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


def _play(start: _Start, writer: Connection, run_task: Callable[[], NoReturn]) -> NoReturn:
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
        run_task()
    finally:
        os._exit(status)


def _text(descriptor: int, mode: str, errors: str) -> TextIOWrapper:
    """A standard file as Python opens it."""
    raw = os.fdopen(descriptor, f"{mode}b", closefd=False)
    return TextIOWrapper(raw, "utf-8", errors, "\n", line_buffering=descriptor == 2)

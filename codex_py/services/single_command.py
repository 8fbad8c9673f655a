"""Runs one command of a client in the sandbox of the model's commands, without a session."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.config.load import LoadedConfig
from codex_py.core.secrets import command_env, key_names
from codex_py.core.session_sandbox import make_sandbox
from codex_py.core.session_settings import choose_policy
from codex_py.errors import ToolError, UserError
from codex_py.protocol.command import MAX_STARTS, PreparedCommand
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox

Stream: TypeAlias = Literal["stdout", "stderr"]

# The exit code that the program `timeout` uses.
_TIMED_OUT: Final = 124
_CHUNK: Final = 1 << 16
_LEFT_SECONDS: Final = 1.0
_MAX_WAITS: Final = 10


class SandboxCommand(Value):
    """A command; `argv` is run without a shell. Without a `policy`, that of a session in `cwd` applies.

    `env` changes the environment of commands; None removes a variable. `seconds` is None for no limit. `cap` limits
    the output that is kept of each stream, in bytes. With `typed` it has a standard input.
    """

    argv: tuple[str, ...]
    cwd: Path
    policy: SandboxPolicy | None = None
    env: Mapping[str, str | None] = {}
    seconds: float | None = 10.0
    cap: int | None = 1024 * 1024
    typed: bool = False


class CommandResult(NamedTuple):
    """`exit_code` is 128+n after signal n, and 124 for a command that took too long."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class SingleCommand:
    """A running command. `hear` gets its output, up to the cap, and whether the cap is reached."""

    def __init__(
        self, loaded: LoadedConfig, request: SandboxCommand, hear: Callable[[Stream, bytes, bool], None] | None = None
    ) -> None:
        self._loaded = loaded
        self._request = request
        self._hear = hear
        self._process: asyncio.subprocess.Process | None = None
        self._stopped = asyncio.Event()
        self._bytes_read = 0
        self._begun = asyncio.Event()

    def stop(self) -> None:
        """Kill the command, or keep it from starting."""
        self._stopped.set()
        self._kill()

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    async def write(self, content: bytes, *, end: bool) -> None:
        """Write to its standard input, and close it with `end`. Raises `UserError` for a command without one."""
        await self._begun.wait()
        pipe = self._process.stdin if self._process is not None else None
        if pipe is None or pipe.is_closing():
            raise UserError("the command takes no input")
        with suppress(ConnectionError):
            pipe.write(content)
            await pipe.drain()
            if end:
                pipe.close()

    async def run(self, home: Path, env: Mapping[str, str]) -> CommandResult:
        """Run it to its end. Raises `UserError` when it cannot be started."""
        config, sandbox = self._loaded.config, make_sandbox(self._loaded, home=home, env=env)
        env = command_env(config, env, key_names(config), {}, home)
        starts = 0
        while True:
            starts += 1
            result, again = await self._run_once(sandbox, env)
            if self._stopped.is_set() or not again or starts == MAX_STARTS:
                return result

    async def _run_once(self, sandbox: Sandbox, env: Mapping[str, str]) -> tuple[CommandResult, bool]:
        """The result, and whether to retry because the sandbox could not be set up."""
        try:
            wrapped = await asyncio.to_thread(self._wrap, sandbox, env)
        except UserError:
            self._begun.set()
            raise
        try:
            await self._start(wrapped)
            result = await self._outcome()
            return result, wrapped.never_began(result.exit_code)
        finally:
            self._begun.set()
            self._kill()
            if self._process is not None:
                await _wait_briefly(self._process)
            await asyncio.to_thread(wrapped.cleanup)

    def _wrap(self, sandbox: Sandbox, env: Mapping[str, str]) -> PreparedCommand:
        request, loaded = self._request, self._loaded
        policy = choose_policy(loaded) if request.policy is None else request.policy
        try:
            return sandbox.wrap(PreparedCommand(tuple(request.argv), request.cwd, env), policy=policy, cwd=request.cwd)
        except ToolError as error:
            raise UserError(str(error)) from error

    async def _start(self, wrapped: PreparedCommand) -> None:
        changed = {**wrapped.env, **self._request.env}
        try:
            self._process = await asyncio.create_subprocess_exec(
                *wrapped.argv,
                cwd=wrapped.cwd,
                env={name: value for name, value in changed.items() if value is not None},
                stdin=asyncio.subprocess.PIPE if self._request.typed else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                pass_fds=wrapped.fds,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserError(f"cannot run `{self._request.argv[0][:200]}`: {reason.lower()}") from error
        finally:
            wrapped.close_fds()
        self._begun.set()
        if self._stopped.is_set():
            self.stop()

    async def _outcome(self) -> CommandResult:
        process = self._process
        assert process is not None and process.stdout is not None and process.stderr is not None
        captured: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        reading = asyncio.gather(
            self._collect("stdout", process.stdout, captured["stdout"]),
            self._collect("stderr", process.stderr, captured["stderr"]),
        )
        timed_out = False
        try:
            async with asyncio.timeout(self._request.seconds):
                await self._end_of(process)
        except TimeoutError:
            timed_out = True
            self._kill()
            await _wait_briefly(process)
        finally:
            await self._finish(reading)
        code = -signal.SIGKILL if process.returncode is None else process.returncode
        exit_code = _TIMED_OUT if timed_out else code if code >= 0 else 128 - code
        return CommandResult(exit_code, bytes(captured["stdout"]), bytes(captured["stderr"]))

    async def _end_of(self, process: asyncio.subprocess.Process) -> None:
        """Wait until it was stopped, or has ended and closed its output, which what it started may hold open."""
        ended, stopped = asyncio.create_task(process.wait()), asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait((ended, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
            stopped.cancel()
        if self._stopped.is_set():
            await _wait_briefly(process)

    async def _finish(self, reading: asyncio.Future[tuple[None, None]]) -> None:
        """Wait for the end of the output for as long as more of it comes: on a busy machine that takes a while, and
        what the command has left running may hold its output open for ever."""
        before = -1
        waits = 0
        while not reading.done() and before < self._bytes_read and waits < _MAX_WAITS:
            before, waits = self._bytes_read, waits + 1
            await asyncio.wait([reading], timeout=_LEFT_SECONDS)
        reading.cancel()
        await asyncio.wait([reading])
        if not reading.cancelled():
            reading.exception()  # that it was cancelled, which nobody else asks for

    async def _collect(self, stream: Stream, pipe: asyncio.StreamReader, captured: bytearray) -> None:
        """Read a stream to its end; output over the cap is dropped."""
        left = self._request.cap
        while chunk := await pipe.read(_CHUNK):
            self._bytes_read += len(chunk)
            taken = chunk if left is None else chunk[:left]
            left = None if left is None else left - len(taken)
            if not taken:
                continue
            if self._hear is None:
                captured += taken
            else:
                self._hear(stream, taken, left == 0)


async def _wait_briefly(process: asyncio.subprocess.Process) -> None:
    """Wait a moment for a killed process; processes that it left running may hold its pipes open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEFT_SECONDS):
            await process.wait()

"""The process of a server that speaks over its standard streams: in a group of its own, ended with all it started.

The SDK's own transport is not used: docs/decisions/014-mcp-through-the-sdk.md.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from codex_py.protocol.command import PreparedCommand

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
_TAIL_BYTES: Final = 64 * 1024
# How long it has to end by itself, and then after SIGTERM: a session that ends waits no longer for all its servers.
# Nothing ignores SIGKILL, but a process may be stuck in the kernel.
_STEPS: Final = (None, 0.2), (signal.SIGTERM, 0.1), (signal.SIGKILL, 0.5)
# How long a server that has closed its output is waited for, to report its exit status.
_STATUS_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.01


class Tail:
    """The last 64 KiB that a server writes beside the protocol, as lines to show."""

    def __init__(self) -> None:
        self._raw = bytearray()

    def append(self, chunk: bytes) -> None:
        self._raw += chunk
        del self._raw[:-_TAIL_BYTES]

    def lines(self, most: int) -> list[str]:
        """The last lines, as they were written."""
        return [line for line in self._raw.decode(errors="replace").splitlines() if line.strip()][-most:]


class ServerChild:
    """A started server: write to `stdin`, read lines from `stdout`; `tail` fills by itself."""

    def __init__(self, process: asyncio.subprocess.Process, cleanup: Callable[[], None]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.stdin: Final = process.stdin
        self.stdout: Final = process.stdout
        self.tail: Final = Tail()
        self._process = process
        self._cleanup = cleanup
        self._listening = asyncio.create_task(self._listen())
        self._stopping: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, command: PreparedCommand) -> ServerChild:
        """Raises `OSError` when it cannot be started, and `ValueError` for words no process can be given."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(command.env),
                cwd=command.cwd,
                pass_fds=command.fds,
                start_new_session=True,
                limit=MAX_ANSWER_BYTES,
            )
        except BaseException:
            command.cleanup()
            raise
        finally:
            command.close_fds()
        return cls(process, command.cleanup)

    async def ended(self) -> int | None:
        """The exit status of a server that has closed its output; None when it goes on without one."""
        await self._is_gone(_STATUS_SECONDS)
        return self._process.returncode

    async def stop(self) -> None:
        """Let it end by itself for 0.2 s, 0.1 s more after SIGTERM; then its whole group is killed."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        # The caller may be cancelled; what has begun goes on.
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        with suppress(OSError, RuntimeError):
            self.stdin.close()
        for number, seconds in _STEPS:
            if number is not None:
                self._signal(number)
            if await self._is_gone(seconds):
                break
        # Its children may still be there.
        self.kill()
        self._listening.cancel()
        with suppress(asyncio.CancelledError):
            await self._listening
        # Private to asyncio, and the only way not to leave open pipes to children that have left the group.
        transport = getattr(self._process, "_transport", None)
        if isinstance(transport, asyncio.SubprocessTransport):
            with suppress(PermissionError, ProcessLookupError):
                transport.close()
        self._cleanup()

    def kill(self) -> None:
        """End it and its group now, without waiting."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _is_gone(self, seconds: float) -> bool:
        """Whether the process ends in time. Not `wait()`: that waits for the pipes too, which its children may hold."""
        deadline = asyncio.get_running_loop().time() + seconds
        while self._process.returncode is None:
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True

    async def _listen(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_TAIL_BYTES):
            self.tail.append(chunk)

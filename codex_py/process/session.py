"""One running command: its output so far, and how to wait for it, write to it and stop it.

Output is always read in the background, so that a command never hangs on a full pipe.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from io import FileIO
from typing import Final

from codex_py.errors import ToolError
from codex_py.process.output import CappedOutput, Captured
from codex_py.process.spawn import Child, CommandSpec

# After the exit, a process that holds the output open may write on: until none came for so long, and at most so long.
GRACE_SECONDS: Final = 0.05
_MAX_GRACE_SECONDS: Final = 0.3
_KILL_SECONDS: Final = 2.0
_SCRATCH_BYTES: Final = 512 * 1024
_PENDING_BYTES: Final = 1024 * 1024


class RunningCommand:
    """A started command. Belongs to the event loop in which it was created."""

    def __init__(self, session_id: int, spec: CommandSpec, child: Child, *, marker: str) -> None:
        self.id: Final = session_id
        self.tty: Final = spec.tty
        self.sandboxed: Final = spec.sandboxed
        self.outside: Final = spec.outside
        self.line: Final = spec.line
        self.cwd: Final = spec.cwd
        self.marker: Final = marker
        self.started: Final = time.monotonic()
        self.last_used = self.started
        self.read_only: Final = spec.read_only
        self.call_id: Final = spec.call_id
        # The part of an unfinished line that was typed; kept by the code that checks input.
        self.typed = ""
        self.on_end: Callable[[RunningCommand], None] | None = None
        self.stopped_by_user = False
        # Whether the model was sent, unasked, that the command has ended.
        self.end_reported = False
        # Called with output as it arrives; a view is valid during the call only.
        self.on_output: Callable[[bytes | memoryview], None] | None = None
        self._child = child
        # The sandbox was not set up, so nothing has run. Known once there is an exit code.
        self.never_began = False
        self._spec = spec
        self._cleanup: Callable[[], None] | None = spec.cleanup
        self._loop = asyncio.get_running_loop()
        self._exit_code: int | None = None
        self._output = FileIO(child.output)
        self._scratch = bytearray(_SCRATCH_BYTES)  # reused: a fresh one for each read would be mapped and unmapped
        self._unread = CappedOutput()
        self._taken = CappedOutput()
        self._total = 0
        self._keeping = True
        self._pending = bytearray()
        self._reading = True
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(child.output, self._read)
        self._watch_exit()

    @property
    def lingers(self) -> bool:
        """Whether something is still open: output held by a grandchild, or a pending clean-up."""
        return self._reading or self._cleanup is not None

    @property
    def exit_code(self) -> int | None:
        """The exit code, 128+n after signal n; None until the command has ended and its output is complete."""
        return self._exit_code if self._ended.done() else None

    async def wait(self, seconds: float) -> bool:
        """Wait until the command has ended, `seconds` at most; say whether it has."""
        if not self._ended.done():
            await asyncio.wait({self._ended}, timeout=seconds)
        self.last_used = time.monotonic()
        return self._ended.done()

    def take(self) -> Captured:
        """The output that came since the last `take`."""
        taken = self._unread.take(final=self._ended.done())
        _append(self._taken, taken)
        return taken

    def transcript(self) -> str:
        """Everything the command has printed so far, capped."""
        whole = CappedOutput()
        _append(whole, self._taken.peek())
        _append(whole, self._unread.peek())
        return whole.peek().text()

    def write(self, text: bytes) -> None:
        """Type `text` into the command's terminal; raise `ToolError` when it has none or does not read."""
        if not self.tty:
            raise ToolError("stdin is closed for this session: it has no terminal; run the command again with tty=true")
        if len(text) > _PENDING_BYTES:
            raise ToolError(f"{len(text)} bytes are too many to type at once, over {_PENDING_BYTES}; use a file")
        if len(self._pending) + len(text) > _PENDING_BYTES:
            raise ToolError(
                f"session `{self.id}` does not read its input; {len(self._pending)} bytes are still waiting"
            )
        if self._reading:
            self._pending += text
            self._flush()

    def interrupt(self) -> None:
        """SIGINT the command, as Ctrl-C would; for a command on a terminal `write` the character instead."""
        self._child.interrupt()

    def kill(self) -> None:
        """SIGKILL the command. `wait` reports its end; the manager kills processes that it left running."""
        if self._exit_code is None:
            self._child.kill()

    async def close(self) -> None:
        """Kill the command if it runs, reap it, stop reading, and close every descriptor."""
        self.on_end = None
        self.kill()
        try:
            await self.wait(_KILL_SECONDS)
        finally:
            self._stop_reading()
            self._output.close()
            self._clean_up()
            self._finish()

    def let_go(self) -> None:
        """Drop later output. It is still read, so that a surviving grandchild does not die of SIGPIPE."""
        self._keeping = False
        self._unread = self._taken = CappedOutput()

    def _watch_exit(self) -> None:
        try:
            watched = os.pidfd_open(self._child.pid)
        except (AttributeError, OSError):
            # No pidfd on this system: a thread waits. It ends with the process, which `close` kills.
            waiting = self._loop.run_in_executor(None, self._child.wait)
            waiting.add_done_callback(lambda _: self._exited())
            return
        self._loop.add_reader(watched, self._pidfd_ready, watched)

    def _pidfd_ready(self, watched: int) -> None:
        if self._child.reap() is not None:
            self._loop.remove_reader(watched)
            os.close(watched)
            self._exited()

    def _exited(self) -> None:
        self._exit_code = self._child.reap()
        self.never_began = self._spec.never_began(self._exit_code)
        # Delayed until everything in the dying sandbox is killed: the files that are removed protected paths from it.
        self._loop.call_later(GRACE_SECONDS, self._clean_up)
        if self._reading:
            self._finish_when_quiet(-1, self._loop.time() + _MAX_GRACE_SECONDS)
        else:
            self._output.close()
            self._finish()

    def _finish_when_quiet(self, size: int, deadline: float) -> None:
        """Finish once nothing has been read since the total was `size` bytes."""
        if self._total > size and self._loop.time() < deadline:
            self._loop.call_later(GRACE_SECONDS, self._finish_when_quiet, self._total, deadline)
        elif self._reading:
            self._finish_reading()

    def _finish_reading(self) -> None:
        """Read the rest of the pipe, at most its capacity: a surviving process may print for ever."""
        owed = max(self._child.capacity, 1)
        while self._reading and owed > 0 and (size := self._read()):
            owed -= size
        self._finish()

    def _clean_up(self) -> None:
        cleanup, self._cleanup = self._cleanup, None
        if cleanup is not None:
            cleanup()

    def _finish(self) -> None:
        if self._ended.done():
            return
        self._ended.set_result(None)
        if self.on_end is not None:
            self.on_end(self)

    def _read(self) -> int:
        """Read what is there, at most half a MiB; return how many bytes that was."""
        piece, ended = self._fill_scratch()
        self._total += len(piece)
        if self._keeping and piece:
            self._unread.append(piece)
            if self.on_output is not None:
                self.on_output(piece)
        if ended:
            self._end_reading()
        return len(piece)

    def _fill_scratch(self) -> tuple[memoryview, bool]:
        """The next output, and whether it is the last."""
        filled, size, view = 0, None, memoryview(self._scratch)
        while filled < len(view):
            try:
                size = self._output.readinto(view[filled:])
            except OSError:  # EIO: the last process left the terminal
                size = 0
            if not size:
                break
            filled += size
        return view[:filled], size == 0

    def _end_reading(self) -> None:
        self._stop_reading()
        if self._exit_code is not None:
            self._finish()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._child.output)
            self._loop.remove_writer(self._child.output)
            # A terminal that goes away hangs up on its command, which may have closed its end first and not ended yet.
            if not self.tty or self._exit_code is not None:
                self._output.close()

    def _flush(self) -> None:
        while self._pending:
            try:
                written = os.write(self._child.output, self._pending[:4096])
            except (BlockingIOError, InterruptedError):
                self._loop.add_writer(self._child.output, self._flush)
                return
            except OSError:  # the command is gone; its end is seen elsewhere
                self._pending.clear()
                break
            del self._pending[:written]
        if self._reading:
            self._loop.remove_writer(self._child.output)


def _append(buffer: CappedOutput, captured: Captured) -> None:
    buffer.append(captured.head)
    buffer.append(captured.gap())
    buffer.append(captured.tail)

"""One running command: its output so far, how to wait for it, write to it, stop it.

Reading goes on in the background whether or not anybody waits, so that a command never hangs on a full pipe.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from typing import Final

from codex_py.errors import ToolError
from codex_py.process.output import CappedOutput, Captured
from codex_py.process.pty import set_size
from codex_py.process.soak import Soak, Soaks
from codex_py.process.spawn import Child, CommandSpec

# After the exit, how long a grandchild that still holds the pipe is waited for.
GRACE_SECONDS: Final = 0.05
_KILL_SECONDS: Final = 2.0
_SCRATCH_BYTES: Final = 512 * 1024
# How often a flood is looked at, and how much of it.
_LOOK_SECONDS: Final = 0.1
_LOOK_BYTES: Final = 8 * 1024
_PENDING_BYTES: Final = 1024 * 1024


class ExecSession:
    """A command that was started. Belongs to the event loop it was made in."""

    def __init__(self, session_id: int, spec: CommandSpec, child: Child, *, marker: str, soaks: Soaks) -> None:
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
        # What is typed of a line that is not ended yet; kept by who judges input.
        self.typed = ""
        self.on_end: Callable[[ExecSession], None] | None = None
        # Hears what is read, as it comes, and of a flood the latest now and then; a view is valid during the call only.
        self.on_output: Callable[[bytes | memoryview], None] | None = None
        self._child = child
        self._cleanup: Callable[[], None] | None = spec.cleanup
        self._loop = asyncio.get_running_loop()
        self._exit_code: int | None = None
        self._output = FileIO(child.output)
        self._scratch = bytearray(_SCRATCH_BYTES)  # reused: a fresh one for each read would be mapped and unmapped
        self._soaks = soaks
        self._soak: Soak | None = None
        self._unread = CappedOutput()
        self._told = CappedOutput()
        self._keeping = True
        self._pending = bytearray()
        self._reading = True
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(child.output, self._read)
        self._watch_exit()

    @property
    def lingers(self) -> bool:
        """Whether there is still something to close: output held open by a grandchild, or a clean-up to come."""
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
        self._collect()
        taken = self._unread.take(final=self._ended.done())
        _append(self._told, taken)
        return taken

    def transcript(self) -> str:
        """Everything the command has printed so far, capped."""
        self._collect()
        whole = CappedOutput()
        _append(whole, self._told.peek())
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

    def resize(self, rows: int, columns: int) -> None:
        """Give the command's terminal another size; nothing for a command without one, or after its end."""
        if self.tty and not self._output.closed:
            set_size(self._child.output, rows, columns)

    def interrupt(self) -> None:
        """SIGINT the command, as Ctrl-C would; for a command on a terminal `write` the character instead."""
        self._child.interrupt()

    def kill(self) -> None:
        """SIGKILL the command at once. Its end is seen by `wait`; what it let go of is the manager's to sweep."""
        if self._exit_code is None:
            self._child.kill()

    async def close(self) -> None:
        """Kill if need be, reap, stop reading, and let go of every descriptor."""
        self.on_end = None
        self.kill()
        try:
            await self.wait(_KILL_SECONDS)
        finally:
            self._stop_reading()
            self._close_output()
            self._clean_up()
            self._finish()

    def let_go(self) -> None:
        """The end was told. Output of a grandchild that lives on is read and thrown away, lest it die of SIGPIPE."""
        self._keeping = False
        self._unread = self._told = CappedOutput()

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
        # Later, when what a dying sandbox still held has surely been killed: what is removed protected something.
        self._loop.call_later(GRACE_SECONDS, self._clean_up)
        if self._reading:
            # What the pipe held by now, and a sip on its way.
            owed = (self._soak.total if self._soak else 0) + 2 * self._child.room
            self._loop.call_later(GRACE_SECONDS, self._finish_when_read, owed)
        else:
            self._close_output()
            self._finish()

    def _finish_when_read(self, owed: int) -> None:
        """End, once a thread has read the `owed` bytes that may have come before the exit; a survivor may go on."""
        if self._soak is not None and self._reading and self._soak.total < owed and self._soak.has_more():
            self._loop.call_later(GRACE_SECONDS, self._finish_when_read, owed)
        else:
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

    def _read(self) -> None:
        got, ended = self._fill_scratch()
        if self._keeping:
            self._unread.feed(got)
        self._tell(got)
        if ended:
            self._end_reading()
        elif self._unread.has_head and self._child.room:
            self._read_in_thread()

    def _fill_scratch(self) -> tuple[memoryview, bool]:
        """Read what is there, a scratch full at most; say whether that was the end."""
        got, size, view = 0, None, memoryview(self._scratch)
        while got < len(view):
            try:
                size = self._output.readinto(view[got:])
            except OSError:  # EIO: the last process left the terminal
                size = 0
            if not size:
                break
            got += size
        return view[:got], size == 0

    def _read_in_thread(self) -> None:
        self._soak = self._soaks.start(self._output, wake=self._wake)
        if self._soak is not None:
            self._loop.remove_reader(self._child.output)
            self._scratch = bytearray()

    def _wake(self) -> None:
        """Called in the thread that reads."""
        with suppress(RuntimeError):  # the loop is closed, and the session with it
            self._loop.call_soon_threadsafe(self._woken)

    def _woken(self) -> None:
        if self._soak is not None and self._soak.ended:
            self._collect()
        else:
            self._loop.call_later(_LOOK_SECONDS, self._look)

    def _look(self) -> None:
        """Show the latest of a flood; all that is kept of it stays with the thread until somebody takes it."""
        if self._soak is not None and self._reading:
            self._tell(self._soak.latest(_LOOK_BYTES))

    def _collect(self) -> None:
        """Take over what the thread has read, if one does."""
        if self._soak is None or not self._reading:
            return
        self._look()
        came = self._soak.take()
        if self._keeping:
            self._unread.feed(came.head)
            self._unread.skip(came.skipped)
            self._unread.feed(came.kept)
        if came.ended:
            self._end_reading()

    def _tell(self, piece: bytes | memoryview) -> None:
        if self._keeping and piece and self.on_output is not None:
            self.on_output(piece)

    def _end_reading(self) -> None:
        self._stop_reading()
        if self._exit_code is not None:
            self._finish()

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading = False
            if self._soak is None:
                self._loop.remove_reader(self._child.output)
                self._loop.remove_writer(self._child.output)
            # A terminal that goes away hangs up on its command, which may have closed its end first and not ended yet.
            if not self.tty or self._exit_code is not None:
                self._close_output()

    def _close_output(self) -> None:
        # The number of a descriptor that a thread still reads must not go to another file.
        if self._soak is None:
            self._output.close()
        else:
            self._soak.stop()

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
    buffer.feed(captured.head)
    buffer.feed(captured.gap())
    buffer.feed(captured.tail)

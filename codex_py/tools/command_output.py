"""The output of a command: emitted while it runs, and cut to size for the model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final

from codex_py.process.output import Captured, incomplete_suffix
from codex_py.process.session import RunningCommand
from codex_py.protocol.events import CommandOutput, Event
from codex_py.text.tokens import BYTES_PER_TOKEN, count_lines, estimate_tokens, truncate_middle

# How long a call waits for a command at least and at most before it leaves it running.
MIN_YIELD_MS: Final = 250
MAX_YIELD_MS: Final = 30_000
# A whole reply, header included, may go over the model's cap for one output by a fifth.
_MARGIN: Final = 1.2
_ATTEMPTS: Final = 4


def compose_reply(captured: Captured, text: str, *, standing: str, seconds: float, max_tokens: int, cap: int) -> str:
    """A reply about `captured` and its `text`. `standing` is the line with the exit code or session ID.

    It is cut to `max_tokens` or to `cap`, the model's limit, whichever is less; the whole reply stays within
    1.2 times the cap.
    """
    size = len(text.encode("utf-8", "replace"))
    if captured.omitted:
        size = len(captured.head) + captured.omitted + len(captured.tail)
    count = estimate_tokens(size)
    header = (
        f"Chunk ID: {os.urandom(3).hex()}\n"
        f"Wall time: {seconds:.4f} seconds\n"
        f"{standing}\n"
        f"Original token count: {count}\n"
        "Output:\n"
    )
    lines = (
        f"... {captured.omitted} bytes omitted ..." if captured.omitted else f"Total output lines: {count_lines(text)}"
    )
    warning = f"Warning: truncated output (original token count: {count})\n{lines}\n\n"
    limit = max(0, min(max_tokens, cap))
    allowed = int(cap * BYTES_PER_TOKEN * _MARGIN)
    reply = ""
    for _ in range(_ATTEMPTS):
        cut = truncate_middle(text, limit, token_count=count)
        reply = header + (cut if cut is text else warning + cut)
        excess = len(reply.encode("utf-8", "replace")) - allowed
        if excess <= 0 or not limit:
            break
        limit = max(0, min(limit, estimate_tokens(size)) - estimate_tokens(excess))
    return reply


def standing_of(exit_code: int | None, session_id: int) -> str:
    """The line that says how a command stands."""
    if exit_code is None:
        return f"Process running with session ID {session_id}"
    return f"Process exited with code {exit_code}"


_SECONDS: Final = 0.05
_MAX_BYTES: Final = 8 * 1024


class LiveOutput:
    """Listens to a command until `end`. Nothing is emitted for a command that ends within 50 ms."""

    def __init__(self, session: RunningCommand, call_id: str, emit: Callable[[Event], None]) -> None:
        self._session = session
        self._call_id = call_id
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        session.on_output = self._take

    def end(self) -> None:
        """Stop emitting: the rest is part of the whole output."""
        self._session.on_output = None
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take(self, chunk: bytes | memoryview) -> None:
        self._pending += chunk[-_MAX_BYTES:]
        if len(self._pending) > _MAX_BYTES:
            self._drop_beginning()
        if self._timer is None:
            self._timer = self._loop.call_later(_SECONDS, self._flush)

    def _drop_beginning(self) -> None:
        """Keep the end, from the beginning of a line on if there is one, never from the middle of a character."""
        del self._pending[:-_MAX_BYTES]
        line = self._pending.find(b"\n") + 1
        if 0 < line < len(self._pending):
            del self._pending[:line]
        while self._pending and self._pending[0] & 0xC0 == 0x80:
            del self._pending[0]

    def _flush(self) -> None:
        self._timer = None
        whole = len(self._pending) - incomplete_suffix(bytes(self._pending[-4:]))
        text = self._pending[:whole].decode("utf-8", "replace")
        del self._pending[:whole]
        if text:
            self._emit(CommandOutput(self._call_id, text))

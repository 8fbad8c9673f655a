"""Emits what a running command prints while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from codex_py.process.output import incomplete_suffix
from codex_py.process.session import RunningCommand
from codex_py.protocol.events import CommandOutput, Event

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

"""Commands and calls of MCP tools under way, with the last lines each has printed."""

from __future__ import annotations

import time
from typing import Final

from codex_py.protocol import events
from codex_py.render.command import running_command
from codex_py.render.entry import Entry

FRAME_SECONDS: Final = 0.12
_MOST_KEPT: Final = 4096
_TAIL_LINES: Final = 6


class _Running:
    def __init__(self, title: str, *, by_user: bool = False) -> None:
        self.title = title
        self.by_user = by_user
        self.began = time.monotonic()
        self.tail = ""


class RunningCommands:
    """A listener that knows the commands between their beginning and their end."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def __len__(self) -> int:
        return len(self._running)

    def note_event(self, event: events.Event) -> None:
        """Take in what happened to a command."""
        match event:
            case events.CommandStarted():
                self._running[event.call_id] = _Running(event.command, by_user=event.by_user)
            case events.McpCallStarted(call_id, server, tool):
                self._running[call_id] = _Running(f"{server}.{tool}")
            case events.McpCallProgress(call_id, done, total, message) if call_id in self._running:
                share = f"{done / total:.0%} " if total else ""
                self._running[call_id].tail = f"{share}{message}".strip()
            case events.CommandOutput(call_id, text) if call_id in self._running:
                running = self._running[call_id]
                running.tail = (running.tail + text)[-_MOST_KEPT:]
            case events.CommandFinished() | events.McpCallFinished():
                self._running.pop(event.call_id, None)
            case _:
                pass

    def clear(self) -> None:
        """Forget them: their turn is over."""
        self._running.clear()

    def entry(self, *, animated: bool) -> Entry | None:
        """All of them as they are drawn, None when there are none."""
        now = time.monotonic()
        lines = max(1, _TAIL_LINES // max(1, len(self._running)))
        parts = [
            running_command(
                running.title,
                seconds=now - running.began,
                frame=int((now - running.began) / FRAME_SECONDS) if animated else 0,
                tail=running.tail,
                tail_lines=lines,
                by_user=running.by_user,
            )
            for running in self._running.values()
        ]
        return Entry(*parts) if parts else None

"""Commands, calls of MCP tools and subagents that are running, for the live part of the screen."""

from __future__ import annotations

import time
from typing import Final

from codex_py.protocol import events
from codex_py.protocol.status import AgentState
from codex_py.render.agents import render_running_agents
from codex_py.render.entry import ScrollbackEntry
from codex_py.render.tool_call import render_running_command, render_running_mcp_call

FRAME_SECONDS: Final = 0.12
_MAX_OUTPUT: Final = 4096
_TAIL_LINES: Final = 6


class _Running:
    """Something between its beginning and its end."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def entry(self, *, tail_lines: int, animated: bool) -> ScrollbackEntry:
        seconds = time.monotonic() - self._began
        return self._drawn(seconds, int(seconds / FRAME_SECONDS) if animated else 0, tail_lines)

    def _drawn(self, seconds: float, frame: int, tail_lines: int) -> ScrollbackEntry:
        raise NotImplementedError


class _Command(_Running):
    def __init__(self, started: events.CommandStarted) -> None:
        super().__init__()
        self._started = started
        self._tail = ""

    def print(self, text: str) -> None:
        self._tail = (self._tail + text)[-_MAX_OUTPUT:]

    def _drawn(self, seconds: float, frame: int, tail_lines: int) -> ScrollbackEntry:
        return render_running_command(
            self._started.command,
            seconds=seconds,
            frame=frame,
            tail=self._tail,
            tail_lines=tail_lines,
            by_user=self._started.by_user,
        )


class _McpCall(_Running):
    def __init__(self, started: events.McpCallStarted) -> None:
        super().__init__()
        self._started = started
        self.progress: events.McpCallProgress | None = None

    def _drawn(self, seconds: float, frame: int, tail_lines: int) -> ScrollbackEntry:
        return render_running_mcp_call(self._started, seconds=seconds, frame=frame, progress=self.progress)


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
                self._running[event.call_id] = _Command(event)
            case events.McpCallStarted():
                self._running[event.call_id] = _McpCall(event)
            case events.McpCallProgress(call_id):
                if isinstance(running := self._running.get(call_id), _McpCall):
                    running.progress = event
            case events.CommandOutput(call_id, text):
                if isinstance(running := self._running.get(call_id), _Command):
                    running.print(text)
            case events.CommandFinished() | events.McpCallFinished():
                self._running.pop(event.call_id, None)
            case _:
                pass

    def detach(self, call_id: str) -> None:
        """Follow a command no more: it goes on in the background."""
        self._running.pop(call_id, None)

    def clear(self) -> None:
        """Forget them: their turn is over."""
        self._running.clear()

    def entry(self, *, animated: bool) -> ScrollbackEntry | None:
        """All of them as they are drawn, None when there are none."""
        lines = max(1, _TAIL_LINES // max(1, len(self._running)))
        entries = [running.entry(tail_lines=lines, animated=animated) for running in self._running.values()]
        return ScrollbackEntry(*entries) if entries else None


_MAX_SHOWN: Final = 8


class RunningAgents:
    """A listener that knows the agents from their beginning to their end."""

    def __init__(self) -> None:
        self._working: dict[str, AgentState] = {}

    def __len__(self) -> int:
        return len(self._working)

    def note_event(self, event: events.AgentChanged) -> None:
        """Take in what an agent does now."""
        if event.agent.is_at_work:
            self._working[event.agent.id] = event.agent
        else:
            self._working.pop(event.agent.id, None)

    def entry(self, *, animated: bool) -> ScrollbackEntry | None:
        """A line for each, None when there are none."""
        if not self._working:
            return None
        frame = int(time.monotonic() / FRAME_SECONDS) if animated else 0
        return render_running_agents(tuple(self._working.values())[:_MAX_SHOWN], frame=frame)

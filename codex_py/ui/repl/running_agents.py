"""The agents that are at work, for the live part of the screen."""

from __future__ import annotations

import time
from typing import Final

from codex_py.protocol import events
from codex_py.protocol.agents import AgentState
from codex_py.render.agents import render_running_agents
from codex_py.render.entry import ScrollbackEntry
from codex_py.ui.repl.running import FRAME_SECONDS

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

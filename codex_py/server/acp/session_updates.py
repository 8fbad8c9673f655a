"""The events of a session as the updates its client is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal

from codex_py.protocol import events
from codex_py.server.acp.content import Json
from codex_py.server.acp.message_chunks import MessageChunks
from codex_py.server.acp.tool_call_updates import ToolCallUpdates
from codex_py.server.acp.tool_calls import ToolCalls

_MESSAGE: Final = "agent_message_chunk"
_THOUGHT: Final = "agent_thought_chunk"


class SessionUpdates:
    """Translates every event, in order. `clock` counts seconds; with `hides_reasoning` no reasoning is sent.

    With `notices` the client shows those; others read what we have to say among the thoughts.
    """

    def __init__(self, clock: Callable[[], float], *, hides_reasoning: bool = False, notices: bool = False) -> None:
        self.chunks: Final = MessageChunks()
        self._tool_calls = ToolCallUpdates(clock)
        self._hides_reasoning = hides_reasoning
        self._notices = notices

    @property
    def calls(self) -> ToolCalls:
        """The tool calls that the client knows."""
        return self._tool_calls.calls

    def translate(self, event: events.Event) -> Iterator[Json]:
        """The updates for an event; for most of them one or none."""
        for update in self._updates(event):
            if update is not None:
                if update["sessionUpdate"] == "tool_call":
                    self.chunks.interrupt()
                yield update

    def note(self, text: str, severity: Literal["info", "warning"] = "info") -> Json:
        """Something of ours that the user should know and that is no part of an answer."""
        if self._notices:
            return {"sessionUpdate": "notice", "severity": severity, "title": text}
        if severity == "warning":
            text = f"Warning: {text}"
        self.chunks.cut(_THOUGHT)
        update = self.chunks.chunk(_THOUGHT, text)
        self.chunks.cut(_THOUGHT)
        return update

    def answer_update(self, text: str) -> Json:
        """Something of ours that is the answer to what the user said."""
        self.chunks.cut(_MESSAGE)
        update = self.chunks.chunk(_MESSAGE, text)
        self.chunks.cut(_MESSAGE)
        return update

    def _updates(self, event: events.Event) -> Iterator[Json | None]:
        match event:
            case events.TextDelta(text):
                yield self.chunks.chunk(_MESSAGE, text)
            case events.MessageDone(text):
                yield self.chunks.complete(_MESSAGE, text)
            case events.ReasoningDelta(text) if not self._hides_reasoning:
                yield self.chunks.chunk(_THOUGHT, text)
            case events.ReasoningDone(text) if not self._hides_reasoning:
                yield self.chunks.complete(_THOUGHT, text)
            case events.Retrying(message, attempt, limit):
                # What was said so far is said again.
                self.chunks.cut(_MESSAGE)
                self.chunks.cut(_THOUGHT)
                yield self.note(f"Reconnecting{f' {attempt}/{limit}' if limit else ''}: {message}")
            case events.Warned(message):
                yield self.note(message, "warning")
            case events.SessionStarted(notice=str(notice)):
                yield self.note(notice)
            case events.PlanUpdated(steps):
                entries = [{"content": step.text, "priority": "medium", "status": step.status} for step in steps]
                yield {"sessionUpdate": "plan", "entries": entries}
            case events.UsageReported(last, _, int(window)):
                yield {"sessionUpdate": "usage_update", "used": last.total_tokens, "size": window}
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self.chunks.cut(_MESSAGE)
                self.chunks.cut(_THOUGHT)
                yield from self._tool_calls.end_turn()
            case _:
                yield from self._tool_calls.translate(event)

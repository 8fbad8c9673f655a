"""The events of a session as the updates its client is sent; messages and reasoning in chunks, each word once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias

from codex_py.protocol import events
from codex_py.server.acp.content import Json, text_block
from codex_py.server.acp.tool_call_updates import ToolCallUpdates
from codex_py.server.acp.tool_calls import ToolCalls

ChunkType: TypeAlias = Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]

_APART: Final = "\n\n"


class MessageChunks:
    """Clients put chunks of one kind together until something else comes: between two messages goes an empty line."""

    def __init__(self) -> None:
        self._count = 0
        self._sent: dict[ChunkType, list[str]] = {}
        self._ended: ChunkType | None = None

    def chunk(self, chunk_type: ChunkType, text: str) -> Json:
        """The next piece of a message that is coming."""
        sent = self._sent.get(chunk_type)
        if sent is None:
            sent = self._begin(chunk_type)
            text_sent = _APART + text if self._ended == chunk_type else text
        else:
            text_sent = text
        self._ended = None
        sent.append(text)
        return self._chunk(chunk_type, text_sent)

    def complete(self, chunk_type: ChunkType, text: str) -> Json | None:
        """A message has ended with this full text: the chunk for what was not sent yet."""
        sent = "".join(self._sent.get(chunk_type, ()))
        rest = text[len(sent) :] if text.startswith(sent) else ""
        more = self.chunk(chunk_type, rest) if rest else None
        self.cut(chunk_type)
        return more

    def cut(self, chunk_type: ChunkType) -> None:
        """No more of a message comes; whatever comes next is another one."""
        if self._sent.pop(chunk_type, None) is not None:
            self._ended = chunk_type

    def interrupt(self) -> None:
        """Another kind of update is sent now, which separates messages by itself."""
        self._ended = None

    def _begin(self, chunk_type: ChunkType) -> list[str]:
        self._count += 1
        return self._sent.setdefault(chunk_type, [])

    def _chunk(self, chunk_type: ChunkType, text: str) -> Json:
        return {"sessionUpdate": chunk_type, "messageId": f"message_{self._count}", "content": text_block(text)}


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

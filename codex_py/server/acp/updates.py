"""Session events as the updates a client is sent: tool calls, and messages and reasoning in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.items import ToolType
from codex_py.protocol.readable import tool_type_of
from codex_py.protocol.status import AT_WORK, AgentState, AgentStatus, AgentTool
from codex_py.server.acp.content import (
    Json,
    change_locations,
    diff_content,
    ends,
    fenced,
    mcp_content,
    output_content,
    text_block,
    text_content,
)
from codex_py.server.acp.tool_calls import Ending, ToolCalls, ToolKind, command_title, patch_title, tool_kind_of_patch
from codex_py.text.display import script_and_shell

# While a command runs, the end of its output is sent now and then.
_TAIL: Final = 8 * 1024
_OUTPUT_INTERVAL: Final = 0.25
_NEVER_SENT: Final = (float("-inf"), "")
_COMPACTION: Final = "compaction"
_TOOL_KINDS: Final[Mapping[ToolType, ToolKind]] = {
    "reads": "read",
    "searches": "search",
    "runs": "execute",
    "writes": "edit",
}
_AGENT_CALLS: Final[Mapping[AgentTool, str]] = {
    "spawn_agent": "Start an agent",
    "send_input": "Tell an agent more",
    "wait": "Wait for agents",
    "close_agent": "Close an agent",
}
_AGENT_ENDS: Final[Mapping[AgentStatus, Ending]] = {"completed": "completed", "shutdown": "completed"}


class ToolCallUpdates:
    """Translates events about work into tool call updates. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.calls: Final = ToolCalls()
        self._clock = clock
        # The running commands: when their output was sent last, and its end.
        self._tails: dict[str, tuple[float, str]] = {}
        # The activity sent last for each agent at work.
        self._doing: dict[str, str] = {}

    def end_turn(self) -> Iterator[Json | None]:
        """End the calls that outlived their turn. Commands that go on get an update now and another when they end."""
        for call_id, (_, tail) in self._tails.items():
            yield self.calls.change(call_id, status="completed", content=_so_far(tail))
            self.calls.outlast(call_id)
        yield from self.calls.end_all()

    def translate(self, event: events.Event) -> Iterator[Json | None]:
        """The updates for an event about a tool call; none for other events."""
        match event:
            case events.CommandStarted() | events.CommandOutput() | events.CommandInput() | events.CommandFinished():
                yield self._command(event)
            case events.PatchStarted() | events.PatchFinished() | events.PatchRejected():
                yield self._patch(event)
            case events.McpCallStarted() | events.McpCallProgress() | events.McpCallFinished():
                yield self._mcp_call(event)
            case events.ToolCallFinished():
                yield self._other_call(event)
            case events.WebSearched(_, query, action):
                yield self.calls.complete(f"Search the web: {query}", "fetch", "completed", rawInput=action)
            case events.SkillUsed(name, _, path, kind):
                verb = "Use the skill" if kind == "explicit" else "Read the skill"
                yield self.calls.complete(f"{verb} {name}", "read", "completed", locations=[{"path": str(path)}])
            case events.AgentCallStarted(call_id, tool, _, prompt):
                about = [text_content(prompt)] if prompt else []
                yield self.calls.begin(call_id, _AGENT_CALLS[tool], "think", content=about)
            case events.AgentCallFinished(call_id, _, agents, _, error):
                message = error or "\n\n".join(map(_agent_message, agents))
                about = {"content": [text_content(ends(message))]} if message else {}
                yield self.calls.end(call_id, "failed" if error else "completed", **about)
            case events.AgentChanged(agent, was):
                yield self._agent(agent, was)
            case events.CompactionStarted():
                yield self.calls.begin(_COMPACTION, "Sum up the conversation so far", "think")
            case events.ContextCompacted(before, after, summary=summary):
                about = f"about {before:,} tokens became {after:,}"
                content = [text_content(f"{about}\n\n{summary}".strip())]
                yield self.calls.end(_COMPACTION, "completed", content=content)
            case _:
                pass

    def _command(
        self, event: events.CommandStarted | events.CommandOutput | events.CommandInput | events.CommandFinished
    ) -> Json | None:
        match event:
            case events.CommandStarted(call_id, command, cwd):
                self._tails[call_id] = _NEVER_SENT
                script = script_and_shell(command)[0]
                return self.calls.begin(
                    call_id, command_title(command), "execute", rawInput={"command": script, "cwd": str(cwd)}
                )
            case events.CommandOutput(call_id, text):
                return self._printed(call_id, text)
            case events.CommandInput(_, command, typed):
                if not typed:
                    return None
                return self.calls.complete(
                    f"Type {typed[:80]!r} into {script_and_shell(command)[0]}", "execute", "completed"
                )
            case events.CommandFinished(call_id, status="in_progress", output=output):
                return self.calls.end(call_id, "completed", content=_so_far(output))
            case events.CommandFinished(call_id, _, _, output, exit_code, seconds, status):
                self._tails.pop(call_id, None)
                return self.calls.end(
                    call_id,
                    "completed" if status == "completed" else "failed",
                    content=output_content(output),
                    rawOutput={"exitCode": exit_code, "seconds": round(seconds, 3), "status": status},
                )

    def _printed(self, call_id: str, text: str) -> Json | None:
        """The end of what a command has printed, which takes the place of what was shown before."""
        sent_at, before = self._tails.get(call_id, _NEVER_SENT)
        tail, now = (before + text)[-_TAIL:], self._clock()
        is_due = now - sent_at >= _OUTPUT_INTERVAL
        self._tails[call_id] = (now if is_due else sent_at, tail)
        return self.calls.change(call_id, content=output_content(tail)) if is_due else None

    def _patch(self, event: events.PatchStarted | events.PatchFinished | events.PatchRejected) -> Json | None:
        match event:
            case events.PatchStarted(call_id, changes):
                return self.calls.begin(
                    call_id,
                    patch_title(changes),
                    tool_kind_of_patch(changes),
                    content=diff_content(changes),
                    locations=change_locations(changes),
                )
            case events.PatchFinished(call_id, _, True):
                return self.calls.end(call_id, "completed")
            case events.PatchFinished(call_id, output=message) | events.PatchRejected(call_id, message):
                content = [text_content(message)]
                ended = self.calls.end(call_id, "failed", content=content)
                return ended or self.calls.complete("Edit files", "edit", "failed", content=content)

    def _mcp_call(self, event: events.McpCallStarted | events.McpCallProgress | events.McpCallFinished) -> Json | None:
        match event:
            case events.McpCallStarted(call_id, server, tool, arguments):
                return self.calls.begin(call_id, f"{server}: {tool}", "other", rawInput=arguments)
            case events.McpCallProgress(call_id, done, total, message):
                share = f"{done / total:.0%}" if total else f"{done:g}"
                return self.calls.change(call_id, content=[text_content(f"{share} {message}".strip())])
            case events.McpCallFinished(call_id, server, tool, arguments, status):
                ending: Ending = "completed" if status == "completed" else "failed"
                content = [text_content(event.error)] if event.error else mcp_content(event.result, event.output)
                ended = self.calls.end(call_id, ending, content=content)
                return ended or self.calls.complete(
                    f"{server}: {tool}", "other", ending, rawInput=arguments, content=content
                )

    def _other_call(self, event: events.ToolCallFinished) -> Json | None:
        ending: Ending = "completed" if event.ok else "failed"
        content = output_content(event.output)
        ended = self.calls.end(event.call_id, ending, content=content)
        tool_type = tool_type_of(event.tool)
        # Plans and questions have updates of their own.
        if ended is not None or (event.ok and tool_type in ("plans", "asks")):
            return ended
        kind: ToolKind = _TOOL_KINDS.get(tool_type, "other")
        return self.calls.complete(event.tool, kind, ending, rawInput=_raw_input(event.arguments), content=content)

    def _agent(self, agent: AgentState, was: AgentStatus | None) -> Json | None:
        about = [text_content(agent.task)] if agent.task else []
        if was is None or (agent.is_at_work and was not in AT_WORK):
            self._doing[agent.id] = ""
            begun = self.calls.begin(_agent_id(agent), f"{agent.title}: {agent.task}", "think", content=about)
            self.calls.outlast(_agent_id(agent))
            return begun
        if agent.is_at_work:
            doing = "waits for you" if agent.is_waiting else script_and_shell(agent.activity)[0]
            if doing == self._doing.get(agent.id):
                return None
            self._doing[agent.id] = doing
            now = [text_content(fenced(ends(doing)))] if doing else []
            return self.calls.change(_agent_id(agent), content=[*about, *now])
        message = [text_content(ends(agent.message))] if agent.message else []
        return self.calls.end(_agent_id(agent), _AGENT_ENDS.get(agent.status, "failed"), content=[*about, *message])


def _so_far(output: str) -> list[Json]:
    return [*output_content(output), text_content("It is still running.")]


def _raw_input(arguments: str) -> Json:
    """The arguments of a call as an object; as text where they are not JSON."""
    try:
        return as_object(decode_json(arguments)) or ({"text": ends(arguments)} if arguments.strip("{} ") else {})
    except ValueError:
        return {"text": ends(arguments)}


def _agent_id(agent: AgentState) -> str:
    return f"agent {agent.id}"


def _agent_message(agent: AgentState) -> str:
    return f"{agent.title}: {agent.status}" + (f"\n\n{agent.message}" if agent.message else "")


ChunkType: TypeAlias = Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]

_APART: Final = "\n\n"


class MessageChunks:
    """Streams messages in chunks. Clients join chunks of one type, so two messages are parted by an empty line."""

    def __init__(self) -> None:
        self._count = 0
        self._sent: dict[ChunkType, list[str]] = {}
        self._ended: ChunkType | None = None

    def chunk(self, chunk_type: ChunkType, text: str) -> Json:
        """The next chunk of a message that is being streamed."""
        apart = ""
        if chunk_type not in self._sent:
            self._count += 1
            self._sent[chunk_type] = []
            apart = _APART if self._ended == chunk_type else ""
        self._ended = None
        self._sent[chunk_type].append(text)
        message_id = f"message_{self._count}"
        return {"sessionUpdate": chunk_type, "messageId": message_id, "content": text_block(apart + text)}

    def whole(self, chunk_type: ChunkType, text: str) -> Json:
        """A message of its own, whatever is being streamed."""
        self.cut(chunk_type)
        update = self.chunk(chunk_type, text)
        self.cut(chunk_type)
        return update

    def complete(self, chunk_type: ChunkType, text: str) -> Json | None:
        """The last chunk of a message with this full text: the part that was not sent yet."""
        sent = "".join(self._sent.get(chunk_type, ()))
        rest = text[len(sent) :] if text.startswith(sent) else ""
        more = self.chunk(chunk_type, rest) if rest else None
        self.cut(chunk_type)
        return more

    def cut(self, chunk_type: ChunkType) -> None:
        """End a message; later text of the same type is another message."""
        if self._sent.pop(chunk_type, None) is not None:
            self._ended = chunk_type

    def interrupt(self) -> None:
        """Note that another type of update is sent, which separates messages by itself."""
        self._ended = None


MESSAGE: Final = "agent_message_chunk"
_THOUGHT: Final = "agent_thought_chunk"


class SessionUpdates:
    """Translates every event, in order. `clock` counts seconds; with `hides_reasoning` no reasoning is sent.

    With `notices` the client shows notices; other clients get them as reasoning text.
    """

    def __init__(self, clock: Callable[[], float], *, hides_reasoning: bool = False, notices: bool = False) -> None:
        self.chunks: Final = MessageChunks()
        self._tool_calls = ToolCallUpdates(clock)
        self.calls: Final = self._tool_calls.calls
        self._hides_reasoning = hides_reasoning
        self._notices = notices

    def translate(self, event: events.Event) -> Iterator[Json]:
        """The updates for an event; for most of them one or none."""
        for update in self._updates(event):
            if update is not None:
                if update["sessionUpdate"] == "tool_call":
                    self.chunks.interrupt()
                yield update

    def note(self, text: str, severity: Literal["info", "warning"] = "info") -> Json:
        """A notice of this program that is not part of an answer."""
        if self._notices:
            return {"sessionUpdate": "notice", "severity": severity, "title": text}
        if severity == "warning":
            text = f"Warning: {text}"
        return self.chunks.whole(_THOUGHT, text)

    def _updates(self, event: events.Event) -> Iterator[Json | None]:
        match event:
            case events.TextDelta(text):
                yield self.chunks.chunk(MESSAGE, text)
            case events.MessageDone(text):
                yield self.chunks.complete(MESSAGE, text)
            case events.ReasoningDelta(text) if not self._hides_reasoning:
                yield self.chunks.chunk(_THOUGHT, text)
            case events.ReasoningDone(text) if not self._hides_reasoning:
                yield self.chunks.complete(_THOUGHT, text)
            case events.Retrying(message, attempt, limit):
                # The text so far is streamed again.
                self.chunks.cut(MESSAGE)
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
                self.chunks.cut(MESSAGE)
                self.chunks.cut(_THOUGHT)
                yield from self._tool_calls.end_turn()
            case _:
                yield from self._tool_calls.translate(event)

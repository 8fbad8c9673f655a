"""Draws agents as lines: running ones, the result of one, and the agent calls of a stored session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.encoding import as_list, as_object, decode_or_none
from codex_py.protocol.events import AgentChanged
from codex_py.protocol.items import ToolCall
from codex_py.protocol.readable import arguments_of
from codex_py.protocol.status import AT_WORK, AgentState, AgentStatus
from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.status import command_title
from codex_py.render.tool_call import output_block, wheel
from codex_py.rollout.stored_turns import HostMessage, PastItem
from codex_py.text.display import ends_of, first_words

_TASK_SHOWN: Final = 400
_LINES: Final = 6
_LINES_EXPANDED: Final = 400
_ENDS: Final[dict[AgentStatus, tuple[str, str, str]]] = {
    "completed": ("✓", "good", "done"),
    "errored": ("✗", "bad", "failed"),
    "interrupted": ("⊘", "warn", "interrupted"),
    "shutdown": ("⊘", "dim", "closed"),
}


def render_agent(event: AgentChanged, *, expanded: bool) -> ScrollbackEntry | None:
    """An agent that has started or ended; None for other changes."""
    agent = event.agent
    if agent.status == event.was or agent.status == "pending_init":
        return None
    if agent.is_at_work:
        return ScrollbackEntry(
            OneLine(_line("▸", "accent", agent, first_words(agent.task, _TASK_SHOWN))), spacing="dense"
        )
    glyph, style, word = _ENDS.get(agent.status, ("·", "dim", agent.status))
    # The result of an agent was shown before it was closed.
    message = agent.message if agent.status != "shutdown" else ""
    shown = ends_of(message or "", _LINES_EXPANDED if expanded else _LINES)
    renderables: list[RenderableType] = [OneLine(_line(glyph, style, agent, word))]
    return ScrollbackEntry(*renderables, *([output_block(shown)] if shown else []), spacing="dense")


def render_refusal(tool: str, reason: str) -> ScrollbackEntry:
    """A failed call about agents."""
    note = Text(f" · failed · {line_of(reason[:_TASK_SHOWN]).plain}", "dim")
    return ScrollbackEntry(OneLine(Text.assemble(("✗ ", "bad"), line_of(tool, "command")), note), spacing="dense")


def render_running_agents(agents: Sequence[AgentState], *, frame: int = 0) -> ScrollbackEntry:
    """A line for each agent: its name and its current activity."""
    return ScrollbackEntry(*(_running_line(agent, frame) for agent in agents))


def agent_standing(agent: AgentState) -> str:
    """An agent's activity or result, in a few words."""
    if agent.is_at_work:
        return "waits for you" if agent.is_waiting else command_title(agent.activity) or "working"
    return _ENDS.get(agent.status, ("", "", agent.status))[2]


def _running_line(agent: AgentState, frame: int) -> OneLine:
    sign = ("?", "warn") if agent.is_waiting else (wheel(frame), "accent")
    note = Text.assemble((" · ", "dim"), line_of(agent_standing(agent), "warn" if agent.is_waiting else "dim"))
    return OneLine(_line(*sign, agent, first_words(agent.task, _TASK_SHOWN)), note)


def _line(glyph: str, style: str, agent: AgentState, text: str) -> Text:
    return Text.assemble((f"{glyph} ", style), line_of(agent.title, "skill"), " ", line_of(text, "dim"))


_NOTICE: Final = "<subagent_notification>"
# The second is what Codex CLI called it for a time.
_WAITS: Final = frozenset({"wait_agent", "wait"})


class AgentCallRenderer:
    """Tracks the agents of a stored session. Each end is shown once, however often it was sent to the model."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._working: dict[str, None] = {}

    def render_item(self, past: PastItem) -> Sequence[ScrollbackEntry] | None:
        """The entries for an item; None for one that is not about agents, or is invalid."""
        match past:
            case PastItem(call=ToolCall(custom=False, namespace=None | "") as call):
                return self._render_call(call, past.output or "")
            case PastItem(happened=HostMessage(text)) if text.startswith(_NOTICE):
                notice = as_object(decode_or_none(text.removeprefix(_NOTICE).partition("</")[0]))
                self._note_name(notice.get("agent_path"), notice.get("nickname"))
                return self._ended({str(notice.get("agent_path")): notice.get("status")})
            case _:
                return None

    def interrupted(self) -> Sequence[ScrollbackEntry]:
        """The entries for the agents that were stopped with their turn."""
        return self._ended(dict.fromkeys(tuple(self._working), "interrupted"))

    def _render_call(self, call: ToolCall, output: str) -> Sequence[ScrollbackEntry] | None:
        arguments, answer = arguments_of(call), as_object(decode_or_none(output))
        target = str(arguments.get("target") or arguments.get("id") or "")
        match call.name:
            case "spawn_agent" if isinstance(agent_id := answer.get("agent_id"), str):
                self._note_name(agent_id, answer.get("nickname"))
                return self._begun(agent_id, arguments)
            case "send_input" if "submission_id" in answer:
                return self._begun(target, arguments)
            case name if name in _WAITS and "status" in answer:
                return self._ended(as_object(answer["status"]))
            case "close_agent" if target and ("previous_status" in answer or "status" in answer):
                self._working[self._name(target)] = None
                return self._ended({target: "shutdown"})
            case "spawn_agent" | "send_input" | "close_agent" | "wait_agent" if not answer:
                # The user has stopped the call and was shown no end of it.
                return [render_refusal(call.name, output)] if output and output != "aborted" else []
            case "list_agents":
                for agent in map(as_object, as_list(answer.get("agents"))):
                    self._note_name(agent.get("agent_id"), agent.get("nickname"))
                return None
            case _:
                return None

    def _begun(self, target: str, arguments: Mapping[str, Any]) -> Sequence[ScrollbackEntry]:
        items = [as_object(item).get("text") for item in as_list(arguments.get("items"))]
        texts = [text for text in (arguments.get("message"), *items) if isinstance(text, str)]
        name = self._name(target)
        self._working[name] = None
        return _render_state(name, "running", task="\n".join(texts))

    def _ended(self, statuses: Mapping[str, Any]) -> Sequence[ScrollbackEntry]:
        entries: list[ScrollbackEntry] = []
        for target, status in statuses.items():
            word, message = next(iter(as_object(status).items()), (status, None))
            name = self._name(target)
            if name in self._working and isinstance(word, str) and word not in AT_WORK:
                del self._working[name]
                entries += _render_state(name, word, message=message if isinstance(message, str) else None)
        return entries

    def _note_name(self, agent_id: object, name: object) -> None:
        if isinstance(agent_id, str) and isinstance(name, str) and name:
            self._names[agent_id] = name

    def _name(self, target: str) -> str:
        return self._names.get(target, target)


def _render_state(name: str, status: str, *, task: str = "", message: str | None = None) -> Sequence[ScrollbackEntry]:
    state = AgentState("", name, "", 1, task, cast("AgentStatus", status), message=message)
    entry = render_agent(AgentChanged(state, None), expanded=False)
    return [] if entry is None else [entry]

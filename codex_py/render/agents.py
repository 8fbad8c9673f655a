"""Agents: a line for each that works, and what one came to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import AgentChanged
from codex_py.protocol.status import AgentState, AgentStatus
from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.titles import command_title
from codex_py.render.tool_call import output_block, wheel
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
    """An agent that began, or came to an end; None for everything else that changes."""
    agent = event.agent
    if agent.status == event.was or agent.status == "pending_init":
        return None
    if agent.is_at_work:
        return ScrollbackEntry(
            OneLine(_line("▸", "accent", agent, first_words(agent.task, _TASK_SHOWN))), spacing="dense"
        )
    glyph, style, word = _ENDS.get(agent.status, ("·", "dim", agent.status))
    # An agent that is only closed has shown its result before.
    message = agent.message if agent.status != "shutdown" else ""
    shown = ends_of(message or "", _LINES_EXPANDED if expanded else _LINES)
    renderables: list[RenderableType] = [OneLine(_line(glyph, style, agent, word))]
    return ScrollbackEntry(*renderables, *([output_block(shown)] if shown else []), spacing="dense")


def render_refusal(tool: str, reason: str) -> ScrollbackEntry:
    """A call about agents that came to nothing."""
    note = Text(f" · failed · {line_of(reason[:_TASK_SHOWN]).plain}", "dim")
    return ScrollbackEntry(OneLine(Text.assemble(("✗ ", "bad"), line_of(tool, "command")), note), spacing="dense")


def render_running_agents(agents: Sequence[AgentState], *, frame: int = 0) -> ScrollbackEntry:
    """A line for each of them: who it is, and what it does at the moment."""
    return ScrollbackEntry(*(_running_line(agent, frame) for agent in agents))


def agent_standing(agent: AgentState) -> str:
    """What an agent does or came to, in a word or a few."""
    if agent.is_at_work:
        return "waits for you" if agent.is_waiting else command_title(agent.activity) or "working"
    return _ENDS.get(agent.status, ("", "", agent.status))[2]


def _running_line(agent: AgentState, frame: int) -> OneLine:
    sign = ("?", "warn") if agent.is_waiting else (wheel(frame), "accent")
    note = Text.assemble((" · ", "dim"), line_of(agent_standing(agent), "warn" if agent.is_waiting else "dim"))
    return OneLine(_line(*sign, agent, first_words(agent.task, _TASK_SHOWN)), note)


def _line(glyph: str, style: str, agent: AgentState, text: str) -> Text:
    return Text.assemble((f"{glyph} ", style), line_of(agent.title, "skill"), " ", line_of(text, "dim"))

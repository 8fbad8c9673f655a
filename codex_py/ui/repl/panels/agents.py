"""The agents of a session: which ones work and which have ended, the transcript of one, and stopping it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Literal

from codex_py.protocol.agents import AgentState
from codex_py.render.agents import agent_standing
from codex_py.text.excerpt import first_words
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm, Option, Sheet, TextLine

_TASK_SHOWN: Final = 300
_MESSAGE_SHOWN: Final = 600


async def manage_agents(
    asker: FormAsker,
    agents: Callable[[], Sequence[AgentState]],
    look_into: Callable[[AgentState], None],
    stop: Callable[[str], Awaitable[bool]],
) -> None:
    """Show the agents until that is closed or one is looked into; one that works can be stopped as well."""
    while (chosen := await asker.pick(agents_listing(agents()))) is not None:
        agent = next((agent for agent in agents() if agent.id == chosen), None)
        if agent is None:
            continue
        action = await asker.choose(agent_sheet(agent)) if agent.is_at_work else "look"
        if action == "look":
            look_into(agent)
            return
        if action == "stop":
            await stop(agent.id)


def agents_listing(agents: Sequence[AgentState]) -> ListForm[str]:
    """The agents by their id, those of agents below the one that started them."""
    return ListForm(
        title="Agents",
        entries=tuple(map(_entry, agents)),
        empty="no agent was started in this session",
        enter="look into it",
    )


def agent_sheet(agent: AgentState) -> Sheet[Literal["look", "stop", "leave"]]:
    """What may be done with one that is at work."""
    return Sheet(
        title=agent.title[:1].upper() + agent.title[1:],
        subject=(TextLine(first_words(agent.task, _TASK_SHOWN), "strong"),),
        facts=(TextLine(agent_standing(agent), "menu.note"),),
        options=(
            Option("l", "Look into it", "look"),
            Option("s", "Stop what it does", "stop", "with every command it has started"),
            Option("n", "Leave it alone", "leave"),
        ),
        refusal="leave",
        escape="leave it alone",
    )


def _entry(agent: AgentState) -> ListEntry[str]:
    facts = [agent.role, agent.model, f"{agent.tokens:,} tokens" if agent.tokens else "", agent.id]
    details = [TextLine(" · ".join(filter(None, facts)), "menu.note")]
    if agent.message:
        details.append(TextLine(first_words(agent.message, _MESSAGE_SHOWN), "output"))
    return ListEntry(
        agent.id,
        f"{'  ' * (agent.depth - 1)}{agent.name}: {first_words(agent.task, _TASK_SHOWN)}",
        agent_standing(agent),
        tuple(details),
        mark="●" if agent.is_at_work else " ",
    )

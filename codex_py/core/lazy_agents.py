"""The place of agents in a session: empty until the first one is started or looked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.protocol.agents import AgentState
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.agents import SubagentContext, Subagents
    from codex_py.protocol.items import ResponseItem
    from codex_py.protocol.live_process import LiveProcess

AGENT_DEPTH: Final = 1


class AgentLimits(Value):
    """At most `threads` agents are at work at a time, and `depth` of them stand one above the other.

    A wait for one lasts `shortest_wait` seconds at least, so that no model asks again and again.
    """

    threads: int = 6
    depth: int = AGENT_DEPTH
    shortest_wait: float = 10.0


class LazySubagents:
    """`make` builds what starts agents from the session's door, which is attached before anything else."""

    def __init__(self, make: Callable[[SubagentContext], Subagents]) -> None:
        self._make = make
        self._context: Callable[[], SubagentContext] | None = None
        self._agents: Subagents | None = None

    def attach(self, context: Callable[[], SubagentContext]) -> None:
        """Let subagents reach the session; `context` is called when the first one is started."""
        self._context = context

    def fill(self) -> Subagents:
        """What starts agents, there from now on."""
        if self._agents is None:
            assert self._context is not None  # attached when the session is made
            self._agents = self._make(self._context())
        return self._agents

    @property
    def is_used(self) -> bool:
        """Whether agents were started or looked for."""
        return self._agents is not None

    def states(self) -> Sequence[AgentState]:
        """The agents there are, those of earlier runs included. Reads the list of sessions where nobody has yet."""
        return self.fill().states()

    def at_work(self) -> Sequence[str]:
        """The names of those that work at the moment."""
        states = self._agents.states() if self._agents is not None else ()
        return [state.name for state in states if state.is_at_work]

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        """What was said and done in an agent's session; empty for one that there is not."""
        return self.fill().items_of(agent_id)

    def stop(self, agent_id: str) -> Awaitable[bool]:
        """Stop what an agent does; False when it was at no work."""
        return self.fill().stop(agent_id)

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands of theirs that still run, each with the agent it belongs to."""
        return self._agents.processes() if self._agents is not None else ()

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command of one of them; False when none with this id runs."""
        return self._agents is not None and await self._agents.stop_process(process_id)

    def interrupt(self) -> None:
        """Stop what all of them do, and their commands; returns at once."""
        if self._agents is not None:
            self._agents.interrupt()

    async def close(self) -> None:
        """End them all, and every process of theirs."""
        if self._agents is not None:
            await self._agents.shut_down()

"""The protocols by which the core knows the feature packages, each with a default that does nothing.

The core imports no feature package: it calls these protocols. To add a feature: declare here what the core needs of it
and the default; implement the protocol in a package of its own, which may import the core; import that package in
`core/build.py` and nowhere else, inside a function when few sessions need it; test it through a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from codex_py.errors import ToolError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import UserInput
from codex_py.protocol.status import AgentState, LiveProcess
from codex_py.tools.spec import AgentControl, SpawnRequest


class AgentSpawner(AgentControl, Protocol):
    """The agents of one session: what the model's tools call, and what the session and the user need besides."""

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        """The items in the history of an agent; empty for an unknown one."""
        ...

    async def stop(self, agent_id: str) -> bool:
        """Stop the work of an agent, for the user; False when it was not at work."""
        ...

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands of agents that still run, each with its agent."""
        ...

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command of an agent; False when none with this id runs."""
        ...

    def interrupt(self) -> None:
        """Stop the work of all agents, and their commands; returns at once."""
        ...

    async def shut_down(self) -> None:
        """Stop all agents and close their sessions."""
        ...


class NoAgents:
    """There are no agents, and none can be started."""

    async def spawn(self, request: SpawnRequest) -> AgentState:
        raise self._error()

    async def send(self, target: str, inputs: tuple[UserInput, ...], *, interrupt: bool) -> AgentState:
        raise self._error()

    async def wait(self, targets: Sequence[str], seconds: float) -> Sequence[AgentState]:
        raise self._error()

    async def close(self, target: str) -> AgentState:
        raise self._error()

    def find(self, target: str) -> AgentState | None:
        return None

    def states(self) -> Sequence[AgentState]:
        return ()

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        return ()

    async def stop(self, agent_id: str) -> bool:
        return False

    def processes(self) -> tuple[LiveProcess, ...]:
        return ()

    async def stop_process(self, process_id: int) -> bool:
        return False

    def interrupt(self) -> None:
        pass

    async def shut_down(self) -> None:
        pass

    def _error(self) -> ToolError:
        return ToolError("agents are not available in this session: do the work yourself")

"""What a session needs for agents before the first one is started: built-in roles, limits, what they share."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from codex_py.core.ports import AgentSpawner
from codex_py.core.session_file import SessionFile
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import SandboxMode
from codex_py.protocol.status import AgentState, LiveProcess
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.agent_tools import ToolChoice


Context = TypeVar("Context")


class AgentRole(Value):
    """Texts for the model and for the choice, and what narrows an agent of the role.

    `model` and `effort` are None where it has those of the session; `tools` is None where it has all of them.
    `provider` is the only one it is for, None for any. Without `may_ask` what needs a yes of the user is
    refused. `path` is the file it was read from, None for a built-in one; `remarks` are what is ignored in it.
    """

    name: str
    about: str = ""
    instructions: str = ""
    model: str | None = None
    effort: str | None = None
    sandbox: SandboxMode | None = None
    tools: ToolChoice | None = None
    skills: tuple[str, ...] = ()
    provider: str | None = None
    may_ask: bool = True
    path: Path | None = None
    remarks: tuple[str, ...] = ()


BUILT_IN: Final = (
    AgentRole(
        "explorer",
        "answers questions about the code, and changes nothing",
        "You are an explorer: find out what you are asked, and report it with the paths and lines it stands in. Change"
        " nothing. Answer briefly: whoever asked reads nothing but your last message.",
        sandbox="read-only",
    ),
    AgentRole(
        "worker",
        "carries out a well-described piece of work, such as a fix or a part of a feature",
        "You are a worker: do the piece of work you are given, and no more. Others may work in the same directory: "
        "leave alone what you have not changed yourself. Name the files you changed in your last message.",
    ),
)


AGENT_DEPTH: Final = 1


class AgentLimits(Value):
    """At most `threads` agents are at work at a time, and `depth` of them stand one above the other.

    A wait for one lasts `shortest_wait` seconds at least, so that no model asks again and again.
    """

    threads: int = 6
    depth: int = AGENT_DEPTH
    shortest_wait: float = 10.0


class LazySubagents(Generic[Context]):
    """`make` builds what starts agents from what the session gives them, which is attached before anything else."""

    def __init__(self, make: Callable[[Context], AgentSpawner]) -> None:
        self._make = make
        self._context: Callable[[], Context] | None = None
        self._agents: AgentSpawner | None = None

    def attach(self, context: Callable[[], Context]) -> None:
        """Let subagents reach the session; `context` is called when the first one is started."""
        self._context = context

    def fill(self) -> AgentSpawner:
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


class AgentTree:
    """What all agents below one session of a user's share: their limits, their names, and how many are at work."""

    def __init__(self, limits: AgentLimits, roles: Mapping[str, AgentRole], file: SessionFile) -> None:
        self.limits: Final = limits
        self.roles: Final = roles
        self.file: Final = file
        self.names: Final[set[str]] = set()
        self.at_work: Final[set[str]] = set()
        self._newest_ms = 0

    def new_id(self) -> str:
        """An id that sorts after all before it, those of the same millisecond too: agents are listed by age."""
        self._newest_ms = max(self._newest_ms + 1, time.time_ns() // 1_000_000)
        return uuid7(self._newest_ms)

    def name_for(self, role: str) -> str:
        """A new name: `agent-1`, `explorer-2`."""
        stem, number = role or "agent", 1
        while f"{stem}-{number}" in self.names:
            number += 1
        self.names.add(f"{stem}-{number}")
        return f"{stem}-{number}"


class SessionRoles(Value):
    """The roles by name, in their order, and a line for each file that is none."""

    roles: Mapping[str, AgentRole]
    warnings: tuple[str, ...] = ()

    def shown(self) -> tuple[tuple[str, str], ...]:
        """What the model is shown of them."""
        return tuple((role.name, role.about) for role in self.roles.values())

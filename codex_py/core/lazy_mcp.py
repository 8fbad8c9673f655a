"""The place of MCP servers in a session: empty in most, filled at the start or when a skill brings the first one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from codex_py.core.turn_context import TurnSettings
from codex_py.protocol.questions import Question
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.session_mcp import SessionMcp
    from codex_py.mcp.servers import ServerSandbox
    from codex_py.tools.mcp_tools import McpTools


# A checked `[mcp_servers.NAME]` table.
Entry: TypeAlias = Mapping[str, Any]


class WaitingServer(NamedTuple):
    """A project's server that the user has said nothing about; `changed` says that they knew another one.

    `pin` stands for exactly what would run.
    """

    name: str
    entry: Entry
    pin: str
    changed: bool


class TrustedServer(NamedTuple):
    """What the user has said yes to: `pin` stands for what a project's server would run, `sandbox` for where."""

    pin: str
    sandbox: ServerSandbox


class ServerTable(Value):
    """The servers of a session: the tables of those that may be started, by name, and those that wait for a word.

    `keeps` are the keys under which the configuration may be told more about a server; not every one has such a place.
    `trusted` is what the user has agreed to for those of the project. `problems` are lines about servers that cannot be
    used.
    """

    entries: Mapping[str, Entry]
    keeps: Mapping[str, tuple[str, ...]]
    waiting: tuple[WaitingServer, ...] = ()
    problems: tuple[str, ...] = ()
    trusted: Mapping[str, TrustedServer] = MappingProxyType({})

    def keys(self) -> frozenset[str]:
        """What skills may know these servers by."""
        if not self.entries:
            return frozenset()
        from codex_py.skills.dependencies import mcp_keys  # the seam: only for who has servers

        return frozenset(key for name, entry in self.entries.items() for key in mcp_keys(name, entry))


class InstallRules(Value):
    """Where servers that skills need are written down: `file`, the user's configuration, which has those `names`.

    With `always` nobody is asked; for the skills of `never` it is not done. `project` is the folder under which the
    file keeps what the user says to the servers of a project.
    """

    file: Path
    project: Path
    names: frozenset[str] = frozenset()
    always: bool = False
    never: frozenset[str] = frozenset()


class LazyMcp:
    """`rules` say how skills bring servers along. `make` builds what servers need, with `now` from the beginning.

    `waiting` are servers of the project that the user is to be asked about.
    """

    def __init__(
        self,
        make: Callable[[], SessionMcp],
        *,
        now: bool,
        rules: InstallRules,
        waiting: Sequence[WaitingServer] = (),
    ) -> None:
        self.rules: Final = rules
        self._waiting = tuple(waiting)
        # Whether what an earlier run was asked for has been looked up.
        self.recalled = False
        # The keys of servers the user was asked about, and the names that are taken.
        self.offered_keys: Final[set[str]] = set()
        self.names: Final[set[str]] = set(rules.names)
        self._make = make
        self._attach: Callable[[SessionMcp], None] | None = None
        self.servers: SessionMcp | None = make() if now else None

    @property
    def tools(self) -> McpTools | None:
        return None if self.servers is None else self.servers.tools

    def take_waiting(self) -> tuple[WaitingServer, ...]:
        """The servers of the project that the user has not been asked about in this session."""
        waiting, self._waiting = self._waiting, ()
        return waiting

    def attach(
        self,
        *,
        ask: Callable[[Question], Awaitable[str | None]],
        warn: Callable[[str], None],
        add_secrets: Callable[[Iterable[str]], None],
        settings: Callable[[], TurnSettings],
    ) -> None:
        """Let the servers reach the session, those there are and those that come."""

        def attach(servers: SessionMcp) -> None:
            from codex_py.core.session_mcp import McpFrontEnd  # loaded with the servers

            servers.attach(McpFrontEnd(ask=ask, warn=warn, add_secrets=add_secrets, settings=settings))

        self._attach = attach
        if self.servers is not None:
            attach(self.servers)

    def fill(self) -> SessionMcp:
        """The servers of the session, which has some from now on."""
        if self.servers is None:
            self.servers = self._make()
            if self._attach is not None:
                self._attach(self.servers)
        return self.servers

    def begin(self) -> None:
        """The first request is about to go out: start the servers in a moment."""
        if self.servers is not None:
            self.servers.begin()

    async def meet(self) -> bool:
        """The first request is about to be made: wait for servers never met. Whether there were any."""
        return self.servers is not None and await self.servers.meet()

    async def close(self) -> None:
        """End every server."""
        if self.servers is not None:
            await self.servers.close()

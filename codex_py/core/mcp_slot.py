"""The place of MCP servers in a session: empty in most, filled at the start or when a skill brings the first one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codex_py.core.turn_context import TurnSettings
from codex_py.protocol.questions import Question
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.session_mcp import SessionMcp
    from codex_py.tools.mcp_tools import McpTools


class InstallRules(Value):
    """Where servers that skills need are written down: `file`, the user's configuration, which has those `names`.

    With `always` nobody is asked; for the skills of `never` it is not done.
    """

    file: Path
    names: frozenset[str] = frozenset()
    always: bool = False
    never: frozenset[str] = frozenset()


class McpSlot:
    """`rules` say how skills bring servers along. `make` builds what servers need, with `now` from the beginning."""

    def __init__(self, make: Callable[[], SessionMcp], *, now: bool, rules: InstallRules) -> None:
        self.rules: Final = rules
        # The keys of servers the user was asked about, and the names that are taken.
        self.asked: Final[set[str]] = set()
        self.names: Final[set[str]] = set(rules.names)
        self._make = make
        self._attach: Callable[[SessionMcp], None] | None = None
        self.servers: SessionMcp | None = make() if now else None

    @property
    def tools(self) -> McpTools | None:
        return None if self.servers is None else self.servers.tools

    def attach(
        self,
        *,
        ask: Callable[[Question], Awaitable[str | None]],
        warn: Callable[[str], None],
        learn: Callable[[Iterable[str]], None],
        settings: Callable[[], TurnSettings],
    ) -> None:
        """Let the servers reach the session, those there are and those that come."""

        def attach(servers: SessionMcp) -> None:
            from codex_py.core.session_mcp import McpFrontDoor  # loaded with the servers

            servers.attach(McpFrontDoor(ask=ask, warn=warn, learn=learn, settings=settings))

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

    async def settle(self) -> None:
        """A turn is about to end: wait for servers never seen, where there may be no other turn."""
        if self.servers is not None:
            await self.servers.settle()

    async def close(self) -> None:
        """End every server."""
        if self.servers is not None:
            await self.servers.close()

"""The MCP clients of a session and its agents, which are made when the first server is needed."""

from __future__ import annotations

from collections.abc import Callable

from codex_py.core.ports import McpClients, NoMcp, SessionAccess


class SessionMcp:
    """The MCP clients that a session shares with its agents: none until it has a server.

    `connect` makes them; `at_once` says that servers are configured, otherwise the first one a skill needs makes them.
    """

    def __init__(self, connect: Callable[[SessionAccess], McpClients], *, at_once: bool) -> None:
        self.clients: McpClients = NoMcp()
        self._connect = connect
        self._at_once = at_once
        self._access: SessionAccess | None = None

    def attach(self, access: SessionAccess) -> None:
        """Let servers reach the user's session from now on."""
        self._access = access
        if self._at_once:
            self.connected()

    def connected(self) -> McpClients:
        """The clients, made now if there are none."""
        assert self._access is not None
        if isinstance(self.clients, NoMcp):
            self.clients = self._connect(self._access)
        return self.clients

"""The MCP servers that a session is configured with: those that may be started, and those that wait for a word."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.mcp.servers import ServerSandbox


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

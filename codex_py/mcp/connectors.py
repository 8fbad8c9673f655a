"""Connectors: tools of a server that belong together under a name, and are shown once the user asks for that name.

A server declares them in the metadata of its tools (`connector_id`, `connector_name`), the user under `[apps]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from codex_py.mcp.catalog import Catalog, McpTool
from codex_py.mcp.servers import ApprovalMode, McpServer
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value

# The entry of `[apps]` for all that have none of their own.
DEFAULT: Final = "_default"
_NAMELESS: Final = "app"
_ODD: Final = re.compile(r"[^a-z0-9]+")


class Connector(NamedTuple):
    """A connector that some server offers; mentioned as `app://id`, or by its `slug`."""

    id: str
    name: str

    @property
    def slug(self) -> str:
        """The name as it is mentioned: lower case, all but letters and digits a dash."""
        return _ODD.sub("-", self.name.lower()).strip("-") or _NAMELESS


class ConnectorRules(Value):
    """The `[apps.ID]` tables: `enabled`, `name`, `server` with `server_tools`, and how tools are approved."""

    tables: Mapping[str, Mapping[str, Any]]

    def is_enabled(self, connector_id: str) -> bool:
        """Whether a connector may be used at all."""
        return self._setting(connector_id, "enabled") is not False

    def declared(self, server: str, tool: str) -> str | None:
        """The connector that the user has made of a server, or of some of its tools."""
        for connector_id, table in self.tables.items():
            if connector_id != DEFAULT and table.get("server") == server:
                tools = table.get("server_tools")
                if tools is None or tool in tools:
                    return connector_id
        return None

    def name_of(self, connector_id: str) -> str | None:
        """What the user calls a connector."""
        name = self.tables.get(connector_id, {}).get("name")
        return name if isinstance(name, str) else None

    def offers(self, connector_id: str, tool: McpTool) -> bool:
        """Whether a tool of a connector is shown when the connector is."""
        own = self._own(connector_id, tool.name).get("enabled")
        if isinstance(own, bool):
            return own
        if self._setting(connector_id, "destructive_enabled") is False and tool.destructive is True:
            return False
        if self._setting(connector_id, "open_world_enabled") is False and tool.open_world is True:
            return False
        return self._setting(connector_id, "default_tools_enabled") is not False

    def mode_of(self, connector_id: str, tool: str) -> ApprovalMode | None:
        """How calls of a tool are approved, where that is said of the connector."""
        own = self._own(connector_id, tool).get("approval_mode")
        return own or self._setting(connector_id, "default_tools_approval_mode")

    def _own(self, connector_id: str, tool: str) -> dict[str, Any]:
        return as_object(as_object(self.tables.get(connector_id, {}).get("tools")).get(tool))

    def _setting(self, connector_id: str, key: str) -> Any:
        own = self.tables.get(connector_id, {}).get(key)
        return self.tables.get(DEFAULT, {}).get(key) if own is None else own


def connector_of(server: McpServer, tool: McpTool, rules: ConnectorRules) -> Connector | None:
    """The connector a tool belongs to; what the user says counts before what the server says."""
    connector_id = rules.declared(server.name, tool.name) or tool.connector_id
    if not connector_id:
        return None
    return Connector(connector_id, rules.name_of(connector_id) or tool.connector_name or connector_id)


def connectors_of(known: Iterable[tuple[McpServer, Catalog]], rules: ConnectorRules) -> dict[str, Connector]:
    """Every enabled connector that these servers offer, by its id; the first to name one says what it is called."""
    found: dict[str, Connector] = {}
    for server, catalog in known:
        for tool in catalog.tools:
            connector = connector_of(server, tool, rules)
            if connector is not None and server.offers(tool.name) and rules.is_enabled(connector.id):
                found.setdefault(connector.id, connector)
    return found

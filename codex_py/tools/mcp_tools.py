"""The tools of MCP servers as the model is shown them, and the way from a call to its server.

Loaded when a server is configured; what runs a call is imported with the first one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from codex_py.mcp.catalog import McpTool
from codex_py.mcp.connections import McpConnections, ServerState
from codex_py.mcp.connectors import Connector, ConnectorRules, connector_of, connectors_of
from codex_py.mcp.names import McpToolRef, ToolNames
from codex_py.mcp.servers import McpServer
from codex_py.protocol.items import ToolCall
from codex_py.tools.lazy import LazyTool
from codex_py.tools.spec import RunCall, Tool, ToolContext, ToolOutput

KeepYes = Callable[[str, str, str], None]

_RESOURCES: Final = "list_mcp_resources"
_TEMPLATES: Final = "list_mcp_resource_templates"
_READ: Final = "read_mcp_resource"


class McpTools:
    """Tools by server, sorted by name; what comes later comes after all that was there, and nothing ever goes.

    `namespaces` says that the provider knows tools in namespaces; else each has a flat name. `pictures` says that the
    model takes them. `keep` writes down a yes for good to a tool of a server, by its hash. Tools of a connector are
    shown once it is wanted; `rules` is what the user says of connectors.
    """

    def __init__(
        self,
        connections: McpConnections,
        *,
        namespaces: bool,
        pictures: bool,
        keep: KeepYes,
        rules: ConnectorRules | None = None,
    ) -> None:
        self.connections: Final = connections
        self.pictures: Final = pictures
        self.keep: Final = keep
        self._rules = rules or ConnectorRules({})
        self._requested: set[str] = set()
        self._namespaces = namespaces
        self._own: dict[str, Tool] = {tool.name: tool for tool in _resource_tools(connections)}
        self._specs: list[dict[str, Any]] = [tool.spec() for tool in self._own.values()]
        self._shown: dict[str, set[str]] = {}
        self._names = ToolNames({})
        self._show([state for state in connections.states if state.catalog is not None])

    def specs(self) -> Sequence[dict[str, Any]]:
        """What the model is shown, in an order that only grows."""
        return self._specs

    def find(self, call: ToolCall) -> Tool | None:
        """The tool of a call; one of a server that nobody has heard of yet is asked for there."""
        if not call.namespace and call.name in self._own:
            return self._own[call.name]
        known = {state.server.name: self._shown.get(state.server.name, ()) for state in self.connections.states}
        ref = self._names.find(call.namespace, call.name) or ToolNames(known).find(call.namespace, call.name)
        return None if ref is None or call.custom else _ServerTool(self, ref)

    def join(self) -> tuple[str, ...]:
        """Show tools that were added since; returns a line for the user about each server that added some."""
        fresh = [state for state in self.connections.states if state.fresh is not None]
        messages: list[str] = []
        for state in fresh:
            state.catalog, state.fresh = state.fresh, None
            before = len(self._shown.get(state.server.name, ()))
            is_new = state.server.name not in self._shown
            self._show([state])
            if count := len(self._shown[state.server.name]) - before:
                what = "is connected for the first time" if is_new else "has more tools"
                join = "1 tool joins" if count == 1 else f"{count} tools join"
                messages.append(f"the MCP server `{state.server.name}` {what}: {join} from this turn on")
        return tuple(messages)

    def connectors(self) -> dict[str, Connector]:
        """The connectors there are now, by their ids, shown or not."""
        known = [(state.server, state.live or state.catalog) for state in self.connections.states]
        return connectors_of([(server, catalog) for server, catalog in known if catalog], self._rules)

    def want(self, connector_ids: Iterable[str]) -> None:
        """Show the tools of these connectors from the next request on; those of a server that is not there yet, too."""
        new = set(connector_ids) - self._requested
        if new:
            self._requested |= new
            self._show([state for state in self.connections.states if state.catalog is not None])

    def is_closed(self, server: McpServer, tool: McpTool) -> bool:
        """Whether a tool belongs to a connector that nobody has asked for, or that is switched off."""
        connector = connector_of(server, tool, self._rules)
        if connector is None:
            return False
        is_open = connector.id in self._requested and self._rules.is_enabled(connector.id)
        return not (is_open and self._rules.offers(connector.id, tool))

    def judged_server(self, server: McpServer, tool: McpTool | None) -> McpServer:
        """The server of a tool, with what the user says of the tool's connector about approvals."""
        connector = tool and connector_of(server, tool, self._rules)
        if tool is None or connector is None or tool.name in server.tool_approvals:
            return server
        mode = self._rules.mode_of(connector.id, tool.name)
        return server if mode is None else server.replace(tool_approvals={**server.tool_approvals, tool.name: mode})

    def _show(self, states: Sequence[ServerState]) -> None:
        offered = {state.server.name: _offered(state) for state in self.connections.states}
        names = ToolNames({server: [tool.name for tool in tools] for server, tools in offered.items()})
        for state in states:
            server = state.server.name
            shown = self._shown.setdefault(server, set())
            usable = [tool for tool in offered[server] if not self.is_closed(state.server, tool)]
            new = [tool for tool in usable if tool.name not in shown]
            if not new:
                continue
            if self._namespaces and not shown:
                self._specs.append(_namespace(names, state, new))
            else:
                # A namespace that the model has seen stays as it is.
                self._specs += [_function(names.flat(server, tool.name), tool) for tool in new]
            shown.update(tool.name for tool in new)
        self._names = names


def _offered(state: ServerState) -> list[McpTool]:
    catalog = state.catalog
    return [] if catalog is None else [tool for tool in catalog.tools if state.server.offers(tool.name)]


def _namespace(names: ToolNames, state: ServerState, tools: Sequence[McpTool]) -> dict[str, Any]:
    server = state.server.name
    about = state.catalog.about if state.catalog else ""
    return {
        "type": "namespace",
        "name": names.namespaces[server],
        "description": about or f"Tools of the MCP server {server}.",
        "tools": [_function(names.inside(server, tool.name), tool) for tool in tools],
    }


def _function(name: str, tool: McpTool) -> dict[str, Any]:
    return {
        "type": "function",
        "name": name,
        "description": tool.description,
        "strict": False,
        "parameters": tool.schema,
    }


class _ServerTool(Tool):
    """One tool of one server."""

    def __init__(self, tools: McpTools, ref: McpToolRef) -> None:
        self.name = f"{ref.server}.{ref.tool}"
        state = tools.connections.state(ref.server)
        tool = state and state.tool(ref.tool)
        # Calls that only read may overlap, and all those of a server that says so in the configuration.
        self.parallel = state is not None and (
            state.server.parallel or (tool is not None and tool.reads_only(state.server))
        )
        self._tools = tools
        self._ref = ref

    def spec(self) -> dict[str, Any]:
        """Shown as a part of what its server offers."""
        return {}

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raises `ToolError` for failures the model can act on."""
        from codex_py.tools.mcp_call import run_mcp_call  # the seam: only when a tool is called

        return await run_mcp_call(self._tools, self._ref, call, context)


def _resource_tools(connections: McpConnections) -> list[Tool]:
    def lists(field: str) -> Callable[[], RunCall]:
        def load() -> RunCall:
            from codex_py.tools.mcp_resources import list_of_servers

            def run(call: ToolCall, context: ToolContext) -> Awaitable[ToolOutput]:
                return list_of_servers(
                    connections, "resources" if field == _RESOURCES else "resourceTemplates", call, context
                )

            return run

        return load

    def read() -> RunCall:
        from codex_py.tools.mcp_resources import read_mcp_resource

        return lambda call, context: read_mcp_resource(connections, call, context)

    return [
        LazyTool(_RESOURCES, lists(_RESOURCES), parallel=True),
        LazyTool(_TEMPLATES, lists(_TEMPLATES), parallel=True),
        LazyTool(_READ, read, parallel=True),
    ]

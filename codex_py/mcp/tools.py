"""The tools of MCP servers: as the model is shown them, and how one of their calls is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py.errors import ToolError
from codex_py.mcp.approval import McpCall, permit_call
from codex_py.mcp.catalog import McpTool
from codex_py.mcp.connections import McpConnections, ServerState
from codex_py.mcp.connectors import Connector, ConnectorRules, connector_of, connectors_of
from codex_py.mcp.host import McpFailed, Progress
from codex_py.mcp.names import McpToolRef, ToolNames, parameter_names, with_own_names
from codex_py.mcp.results import ResourcePages, read_resource, read_result
from codex_py.mcp.schemas import parameters_for_model
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import as_list
from codex_py.protocol.events import McpCallFinished, McpCallProgress, McpCallStarted
from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import fields_of
from codex_py.tools.spec import CallFailed, Tool, ToolContext, ToolOutput

# Stores the permanent approval of a server's tool with a hash. Raises `UserError` when it cannot.
KeepApproval: TypeAlias = Callable[[McpServer, str, str], None]

_LISTS: Final = {"list_mcp_resources": "resources", "list_mcp_resource_templates": "resourceTemplates"}
_READ: Final = "read_mcp_resource"
_PROGRESS_SECONDS: Final = 0.1


class McpTools:
    """Tools by server, sorted by name; what comes later comes after all that was there, and nothing ever goes.

    `namespaces` says that the provider knows tools in namespaces; else each has a flat name. `pictures` says that the
    model takes them. `keep` stores the lasting approval of a server's tool, by its hash. Tools of a connector are
    shown once it is wanted; `rules` is what the user says of connectors.
    """

    def __init__(
        self,
        connections: McpConnections,
        *,
        namespaces: bool,
        pictures: bool,
        keep: KeepApproval,
        rules: ConnectorRules | None = None,
    ) -> None:
        self.connections: Final = connections
        self.pictures: Final = pictures
        self.keep: Final = keep
        self._rules = rules or ConnectorRules({})
        self._requested: set[str] = set()
        self._namespaces = namespaces
        self._own: dict[str, Tool] = {name: _ResourceTool(name, connections) for name in (*_LISTS, _READ)}
        self._specs: list[dict[str, Any]] = [tool.spec() for tool in self._own.values()]
        self._shown: dict[str, set[str]] = {}
        self._names = ToolNames({})
        self._show([state for state in connections.states if state.catalog is not None])

    def specs(self) -> Sequence[dict[str, Any]]:
        """The specs that the model gets; new ones are only appended."""
        return self._specs

    def find(self, call: ToolCall) -> Tool | None:
        """The tool of a call. An unknown name in the namespace of a known server is passed on to that server."""
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
        known = [(state.server, state.known) for state in self.connections.states]
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
        "parameters": parameters_for_model(tool.schema),
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
        """Run a call; the answer of a server that failed is an output too. Raises `ToolError` when there is none."""
        tools, ref = self._tools, self._ref
        arguments = fields_of(call)
        state = tools.connections.state(ref.server)
        if state is not None and (tool := state.tool(ref.tool)) is not None:
            arguments = with_own_names(arguments, parameter_names(tool.schema))
        if state is None or not state.server.offers(ref.tool):
            raise ToolError(f"`{ref.tool}` of the MCP server `{ref.server}` is not available in this session")
        report = _CallReport(ref, arguments, context)
        context.emit(McpCallStarted(context.call_id, ref.server, ref.tool, arguments))
        try:
            # First, because only a running server says what its tool does.
            await tools.connections.link(ref.server)
            await self._permit(state, arguments, context)
        except McpFailed as error:
            raise report.failed(str(error)) from error
        except ToolError as error:
            raise CallFailed(str(error), report.end("declined", error=str(error))) from error
        return await self._answer(arguments, report, context)

    async def _permit(self, state: ServerState, arguments: dict[str, Any], context: ToolContext) -> None:
        tools, ref = self._tools, self._ref
        tool = state.tool(ref.tool)
        if tool is None:
            raise McpFailed(f"the MCP server `{ref.server}` has no tool `{ref.tool}` now")
        if tools.is_closed(state.server, tool):
            raise ToolError(f"call refused: the user has not asked for the connector of `{ref.tool}`")
        call = McpCall(tools.judged_server(state.server, tool), ref.tool, tool, arguments)
        await permit_call(call, context, tools.keep)

    async def _answer(self, arguments: dict[str, Any], report: _CallReport, context: ToolContext) -> ToolOutput:
        report.begin()
        try:
            link = await self._tools.connections.link(self._ref.server)
            result = await link.call_tool(self._ref.tool, arguments, report.progress)
        except McpFailed as error:
            reason = f"the MCP server `{self._ref.server}` did not answer `{self._ref.tool}`: {error}"
            raise report.failed(reason) from error
        tokens, pictures = context.output_tokens, self._tools.pictures
        read = await read_result(result, seconds=report.seconds(), output_tokens=tokens, pictures=pictures)
        ok = result.get("isError") is not True
        payload = {"content": as_list(result.get("content")), "structured_content": result.get("structuredContent")}
        ended = report.end(
            "completed" if ok else "failed", output=read.text, result=payload, error=None if ok else read.text
        )
        return ToolOutput(read.text, ok, read.parts, ended=ended)


class _ResourceTool(Tool):
    """A tool for the resources of all servers."""

    parallel = True
    spec_directory = Path(__file__).parent

    def __init__(self, name: str, connections: McpConnections) -> None:
        self.name = name
        self._connections = connections

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """List or read. Raises `ToolError` for failures the model can act on."""
        arguments = self.read(call)
        server: str | None = arguments.get("server")
        if self.name == _READ:
            return await read_resource(self._connections, str(server), arguments["uri"], context)
        pages = ResourcePages(self._connections, _LISTS[self.name])
        return await pages.read(server, arguments.get("cursor"), context)


class _CallReport:
    """Makes the events of a call."""

    def __init__(self, ref: McpToolRef, arguments: dict[str, Any], context: ToolContext) -> None:
        self._ref = ref
        self._arguments = arguments
        self._context = context
        self._began = time.monotonic()
        self._last_progress = 0.0

    def begin(self) -> None:
        """The wait for the server and for the user is no part of the call."""
        self._began = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last_progress >= _PROGRESS_SECONDS:
            self._last_progress = now
            self._context.emit(McpCallProgress(self._context.call_id, *progress))

    def failed(self, reason: str) -> ToolError:
        return CallFailed(reason, self.end("failed", error=reason))

    def end(
        self, status: Any, *, output: str = "", result: dict[str, Any] | None = None, error: str | None = None
    ) -> McpCallFinished:
        call = (self._context.call_id, self._ref.server, self._ref.tool, self._arguments)
        return McpCallFinished(*call, status, self.seconds(), output, result, error)

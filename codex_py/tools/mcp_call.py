"""One call of a server's tool: waited for its server, permitted, made, told, and read for the model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast

from codex_py.errors import ToolError
from codex_py.mcp.host import McpFailed, Progress
from codex_py.mcp.names import McpToolRef
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.events import McpCallFinished, McpCallProgress, McpCallStarted
from codex_py.protocol.items import ToolCall
from codex_py.tools.mcp_approval import McpCall, permit_call
from codex_py.tools.mcp_results import read_result
from codex_py.tools.spec import ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.mcp.connection import Link
    from codex_py.tools.mcp_tools import McpTools

_PROGRESS_SECONDS: Final = 0.1


async def run_mcp_call(tools: McpTools, ref: McpToolRef, call: ToolCall, context: ToolContext) -> ToolOutput:
    """Run a call; the answer of a server that failed is an output too. Raises `ToolError` when there is none."""
    arguments = _arguments(call)
    state = tools.connections.state(ref.server)
    if state is None or not state.server.offers(ref.tool):
        raise ToolError(f"`{ref.tool}` of the MCP server `{ref.server}` is not available in this session")
    report = _CallReport(ref, arguments, context)
    context.emit(McpCallStarted(context.call_id, ref.server, ref.tool, arguments))
    try:
        # First, because only a server that is there says what its tool does.
        link = await tools.connections.link(ref.server)
        tool = state.tool(ref.tool)
        if tool is None:
            raise McpFailed(f"the MCP server `{ref.server}` has no tool `{ref.tool}` now")
        if tools.is_closed(state.server, tool):
            raise ToolError(f"call refused: the user has not asked for the connector of `{ref.tool}`")
        judged = McpCall(tools.judged_server(state.server, tool), ref.tool, tool, arguments)
        await permit_call(judged, context, tools.keep)
    except McpFailed as error:
        raise report.failed(str(error)) from error
    except ToolError as error:
        report.end("declined", error=str(error))
        raise
    result = await _answer(link, ref, arguments, report)
    seconds = report.seconds()
    read = await read_result(result, seconds=seconds, output_tokens=context.output_tokens, pictures=tools.pictures)
    ok = result.get("isError") is not True
    payload = {"content": result.get("content", []), "structured_content": result.get("structuredContent")}
    report.end("completed" if ok else "failed", output=read.text, result=payload, error=None if ok else read.text)
    return ToolOutput(read.text, ok, read.parts)


async def _answer(link: Link, ref: McpToolRef, arguments: dict[str, Any], report: _CallReport) -> dict[str, Any]:
    report.begin()
    try:
        return await link.call_tool(ref.tool, arguments, report.progress)
    except McpFailed as error:
        raise report.failed(f"the MCP server `{ref.server}` did not answer `{ref.tool}`: {error}") from error


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = decode_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"failed to parse function arguments: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ToolError("failed to parse function arguments: not a JSON object")
    return as_object(cast("object", value))


class _CallReport:
    """Emits the events of a call."""

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
        self.end("failed", error=reason)
        return ToolError(reason)

    def end(
        self, status: Any, *, output: str = "", result: dict[str, Any] | None = None, error: str | None = None
    ) -> None:
        self._context.emit(
            McpCallFinished(
                self._context.call_id,
                self._ref.server,
                self._ref.tool,
                self._arguments,
                status,
                self.seconds(),
                output,
                result,
                error,
            )
        )

"""One call of a server's tool: waited for its server, permitted, made, told, and read for the model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast

from codex_py.errors import ToolError
from codex_py.mcp.host import McpFailed, Progress
from codex_py.mcp.names import ToolPlace
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.events import McpCallFinished, McpCallProgress, McpCallStarted
from codex_py.protocol.items import ToolCall
from codex_py.tools.mcp_guard import McpCall, permit_call
from codex_py.tools.mcp_results import read_result
from codex_py.tools.spec import ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.mcp.connection import Link
    from codex_py.tools.mcp_tools import McpTools

_PROGRESS_SECONDS: Final = 0.1


async def run_mcp_call(tools: McpTools, place: ToolPlace, call: ToolCall, context: ToolContext) -> ToolOutput:
    """Run a call; the answer of a server that failed is an output too. Raises `ToolError` when there is none."""
    arguments = _arguments(call)
    state = tools.connections.state(place.server)
    if state is None or not state.server.offers(place.tool):
        raise ToolError(f"`{place.tool}` of the MCP server `{place.server}` is not available in this session")
    telling = _Telling(place, arguments, context)
    context.emit(McpCallStarted(context.call_id, place.server, place.tool, arguments))
    try:
        # First, because only a server that is there says what its tool does.
        link = await tools.connections.link(place.server)
        tool = state.tool(place.tool)
        if tool is None:
            raise McpFailed(f"the MCP server `{place.server}` has no tool `{place.tool}` now")
        if tools.is_closed(state.server, tool):
            raise ToolError(f"call refused: the user has not asked for the connector of `{place.tool}`")
        judged = McpCall(tools.judged_server(state.server, tool), place.tool, tool, arguments)
        await permit_call(judged, context, tools.keep)
    except McpFailed as error:
        raise telling.failed(str(error)) from error
    except ToolError as error:
        telling.end("declined", error=str(error))
        raise
    result = await _answer(link, place, arguments, telling)
    seconds = telling.seconds()
    read = await read_result(result, seconds=seconds, output_tokens=context.output_tokens, pictures=tools.pictures)
    ok = result.get("isError") is not True
    kept = {"content": result.get("content", []), "structured_content": result.get("structuredContent")}
    telling.end("completed" if ok else "failed", output=read.text, result=kept, error=None if ok else read.text)
    return ToolOutput(read.text, ok, read.parts)


async def _answer(link: Link, place: ToolPlace, arguments: dict[str, Any], telling: _Telling) -> dict[str, Any]:
    telling.begin()
    try:
        return await link.call_tool(place.tool, arguments, telling.progress)
    except McpFailed as error:
        raise telling.failed(f"the MCP server `{place.server}` did not answer `{place.tool}`: {error}") from error


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = decode_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"failed to parse function arguments: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ToolError("failed to parse function arguments: not a JSON object")
    return as_object(cast("object", value))


class _Telling:
    """What listeners hear of a call."""

    def __init__(self, place: ToolPlace, arguments: dict[str, Any], context: ToolContext) -> None:
        self._place = place
        self._arguments = arguments
        self._context = context
        self._began = time.monotonic()
        self._told = 0.0

    def begin(self) -> None:
        """The wait for the server and for the user is no part of the call."""
        self._began = time.monotonic()

    def seconds(self) -> float:
        return time.monotonic() - self._began

    def progress(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._told >= _PROGRESS_SECONDS:
            self._told = now
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
                self._place.server,
                self._place.tool,
                self._arguments,
                status,
                self.seconds(),
                output,
                result,
                error,
            )
        )

"""The tools for what MCP servers offer to be read. Imports pydantic: loaded at the first call."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from codex_py.errors import ToolError
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpFailed
from codex_py.protocol.encoding import as_list, encode_json
from codex_py.protocol.items import ToolCall
from codex_py.text.tokens import truncate_middle
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.mcp_results import read_result
from codex_py.tools.spec import ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.mcp.connection import Link


class ListArguments(BaseModel):
    server: str | None = None
    cursor: str | None = None


class ReadResourceArguments(BaseModel):
    server: str
    uri: str


async def list_of_servers(
    connections: McpConnections, field: Literal["resources", "resourceTemplates"], call: ToolCall, context: ToolContext
) -> ToolOutput:
    """One page of one server, or the first page of all, as JSON. Raises `ToolError`."""
    arguments = parse_arguments(call, ListArguments)
    if arguments.cursor and not arguments.server:
        raise ToolError("`cursor` belongs to one server: name it in `server`")
    if arguments.server:
        page = await _page(await _link(connections, arguments.server), field, arguments.cursor)
        return _shown({"server": arguments.server, **page}, context)
    names = [state.server.name for state in connections.states]
    pages = await asyncio.gather(*(_first_page(connections, name, field) for name in names))
    found = [
        {"server": name, **resource}
        for name, page in zip(names, pages, strict=True)
        for resource in page.get(field, ())
    ]
    failed = {name: page["error"] for name, page in zip(names, pages, strict=True) if "error" in page}
    return _shown({field: found, **({"errors": failed} if failed else {})}, context)


async def read_mcp_resource(connections: McpConnections, call: ToolCall, context: ToolContext) -> ToolOutput:
    """The contents of a resource, in the form of a tool's answer. Raises `ToolError`."""
    arguments = parse_arguments(call, ReadResourceArguments)
    link = await _link(connections, arguments.server)
    began = time.monotonic()
    try:
        answer = await link.read_resource(arguments.uri)
    except McpFailed as error:
        raise ToolError(f"cannot read `{arguments.uri}` of `{arguments.server}`: {error}") from error
    contents = [{"type": "resource", "resource": content} for content in as_list(answer.get("contents"))]
    read = await read_result(
        {"content": contents},
        seconds=time.monotonic() - began,
        output_tokens=context.output_tokens,
        pictures=True,
    )
    return ToolOutput(read.text, parts=read.parts)


async def _first_page(connections: McpConnections, name: str, field: str) -> dict[str, Any]:
    try:
        return await _page(await _link(connections, name), field, None)
    except ToolError as error:
        return {"error": str(error)}


async def _link(connections: McpConnections, name: str) -> Link:
    try:
        return await connections.link(name)
    except McpFailed as error:
        raise ToolError(str(error)) from error


async def _page(link: Link, field: str, cursor: str | None) -> dict[str, Any]:
    try:
        page = await link.list_resources(cursor, templates=field != "resources")
    except McpFailed as error:
        raise ToolError(f"the MCP server `{link.server.name}` lists none: {error}") from error
    next_page = {"nextCursor": page["nextCursor"]} if page.get("nextCursor") else {}
    return {field: page.get(field, []), **next_page}


def _shown(answer: dict[str, Any], context: ToolContext) -> ToolOutput:
    return ToolOutput(truncate_middle(encode_json(answer).decode(errors="replace"), context.output_tokens))

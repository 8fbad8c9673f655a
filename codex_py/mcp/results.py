"""Results of servers in the form the model reads, and the tools that list and read their resources.

Content parts keep within one budget.
"""

from __future__ import annotations

import asyncio
import binascii
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from codex_py.errors import ToolError
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpFailed
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.text.tokens import BYTES_PER_TOKEN, truncate_middle
from codex_py.tools.spec import ToolContext, ToolOutput
from codex_py.tools.view_image import picture_url

_MAX_CONTENTS: Final = 256
_BESIDE_CONTENT: Final = ("_meta", "isError", "resultType")


class ReadResult(NamedTuple):
    """`parts` are for the model, `text` is what stands in them."""

    parts: tuple[dict[str, Any], ...]
    text: str


async def read_result(result: Mapping[str, Any], *, seconds: float, output_tokens: int, pictures: bool) -> ReadResult:
    """A `CallToolResult` in the published form: a line with the time it took, then its content in order.

    Structured content is shown unless a text says the same. Without `pictures` a line of text stands for each picture.
    Servers may write odd results: what is no block of a known type is shown as it is.
    """
    contents = _contents(result)
    blocks = [await _block(content, pictures=pictures) for content in contents[:_MAX_CONTENTS]]
    if len(contents) > _MAX_CONTENTS:
        blocks.append(f"[omitted {len(contents) - _MAX_CONTENTS} items ...]")
    structured = result.get("structuredContent")
    if structured is not None and not any(_says(content, structured) for content in blocks):
        blocks.append(encode_json(structured).decode(errors="replace"))
    texts = "\n".join(content for content in blocks if isinstance(content, str))
    head = {"type": "input_text", "text": f"Wall time: {seconds:.4f} seconds\nOutput:"}
    return ReadResult((head, *_within(blocks, output_tokens)), truncate_middle(texts, output_tokens))


def _contents(result: Mapping[str, Any]) -> Sequence[object]:
    if "content" in result:
        return as_list(result["content"]) or [content for content in [result["content"]] if content]
    if result.get("structuredContent") is not None:
        return ()
    return [rest] if (rest := {key: value for key, value in result.items() if key not in _BESIDE_CONTENT}) else ()


def _within(blocks: Sequence[str | dict[str, Any]], tokens: int) -> list[dict[str, Any]]:
    """The parts; all texts together keep to the budget, the first that does not fit is cut, those after it counted."""
    left = tokens * BYTES_PER_TOKEN
    fitted: list[dict[str, Any]] = []
    omitted = 0
    for block in blocks:
        if isinstance(block, dict):
            fitted.append(block)
        elif left <= 0:
            omitted += 1
        else:
            size = len(block.encode(errors="replace"))
            fitted.append({"type": "input_text", "text": truncate_middle(block, left // BYTES_PER_TOKEN)})
            left -= size
    if omitted:
        fitted.append({"type": "input_text", "text": f"[omitted {omitted} text items ...]"})
    return fitted


async def _block(value: object, *, pictures: bool) -> str | dict[str, Any]:
    if isinstance(value, str):
        return value
    content = as_object(value)
    match content.get("type"):
        case "text":
            return str(content.get("text", ""))
        case "image":
            return await _picture(str(content.get("data", "")), str(content.get("mimeType", "")), pictures=pictures)
        case "audio":
            return f"[audio, {content.get('mimeType', 'unknown type')}: not shown]"
        case "resource":
            return await _resource(as_object(content.get("resource")), pictures=pictures)
        case "resource_link":
            about = content.get("description")
            return f"[resource {content.get('uri', '')}: {content.get('name', '')}{f', {about}' if about else ''}]"
        case _:
            return encode_json(value).decode(errors="replace")


async def _resource(resource: Mapping[str, Any], *, pictures: bool) -> str | dict[str, Any]:
    """A resource that came along, or was read."""
    if isinstance(text := resource.get("text"), str):
        return text
    media = str(resource.get("mimeType", ""))
    if media.startswith("image/"):
        return await _picture(str(resource.get("blob", "")), media, pictures=pictures)
    blob = str(resource.get("blob", ""))
    if media.startswith("text/") and (decoded := _text_in(blob)) is not None:
        return decoded
    size = len(blob) * 3 // 4
    return f"[{media or 'binary'} resource {resource.get('uri', '')}, {size} bytes: not shown]"


def _text_in(blob: str) -> str | None:
    try:
        return binascii.a2b_base64(blob).decode()
    except ValueError:
        return None


async def _picture(encoded: str, media: str, *, pictures: bool) -> str | dict[str, Any]:
    if not pictures:
        return f"[picture, {media}: the model does not take pictures]"
    try:
        url = await picture_url(binascii.a2b_base64(encoded))
    except (ToolError, ValueError) as error:
        return f"[picture, {media}: not shown: {error}]"
    return {"type": "input_image", "image_url": url, "detail": "auto"}


def _says(block: str | dict[str, Any], structured: object) -> bool:
    if not isinstance(block, str) or not block.lstrip().startswith(("{", "[", '"')):
        return False
    try:
        return decode_json(block) == structured
    except ValueError:
        return False


class ResourcePages(NamedTuple):
    """Lists what servers offer: `field` is `resources` or `resourceTemplates`."""

    connections: McpConnections
    field: str

    async def read(self, server: str | None, cursor: str | None, context: ToolContext) -> ToolOutput:
        """One page of one server, or the first page of all, as JSON. Raises `ToolError`."""
        if cursor and not server:
            raise ToolError("`cursor` belongs to one server: name it in `server`")
        if server:
            return _shown({"server": server, **await self._page(server, cursor)}, context)
        names = [state.server.name for state in self.connections.states]
        pages = dict(zip(names, await asyncio.gather(*map(self._first_page, names)), strict=True))
        found = [{"server": name, **item} for name, page in pages.items() for item in page.get(self.field, ())]
        failed = {name: page["error"] for name, page in pages.items() if "error" in page}
        return _shown({self.field: found, **({"errors": failed} if failed else {})}, context)

    async def _first_page(self, name: str) -> dict[str, Any]:
        try:
            return await self._page(name, None)
        except ToolError as error:
            return {"error": str(error)}

    async def _page(self, name: str, cursor: str | None) -> dict[str, Any]:
        try:
            link = await self.connections.link(name)
            page = await link.list_resources(cursor, templates=self.field != "resources")
        except McpFailed as error:
            raise ToolError(f"the MCP server `{name}` lists none: {error}") from error
        next_page = {"nextCursor": page["nextCursor"]} if page.get("nextCursor") else {}
        return {self.field: page.get(self.field, []), **next_page}


async def read_resource(connections: McpConnections, server: str, uri: str, context: ToolContext) -> ToolOutput:
    """The contents of a resource, in the form of a tool's answer. Raises `ToolError`."""
    began = time.monotonic()
    try:
        link = await connections.link(server)
        answer = await link.read_resource(uri)
    except McpFailed as error:
        raise ToolError(f"cannot read `{uri}` of `{server}`: {error}") from error
    contents = [{"type": "resource", "resource": content} for content in as_list(answer.get("contents"))]
    seconds, tokens = time.monotonic() - began, context.output_tokens
    read = await read_result({"content": contents}, seconds=seconds, output_tokens=tokens, pictures=True)
    return ToolOutput(read.text, parts=read.parts)


def _shown(answer: dict[str, Any], context: ToolContext) -> ToolOutput:
    return ToolOutput(truncate_middle(encode_json(answer).decode(errors="replace"), context.output_tokens))

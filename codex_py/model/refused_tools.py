"""Tools of MCP servers that a model server refuses: which ones a refusal names, and the list without them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

TOOL_REFUSED: Final = "{} is left out of this session, because the model server has refused it: {}"
_STATUSES: Final = frozenset({400, 422, 500})
_FOREIGN: Final = "mcp__"
# `tools.12.custom.input_schema` (Anthropic), `tools[12].function.description` and `tools[3].tools[4]` (OpenAI),
# `tools[0].function_declarations[12]` (Google, where the first number is always 0).
_POSITION: Final = (
    r"\btools(?:\[0\]\.function_declarations)?[\[.](\d{1,4})\]?(?:\.tools[\[.](\d{1,4}))?(?!\]?\.function_declarations)"
)


def refused_tools(status: int, sentence: str, body: bytes, tools: bytes) -> frozenset[str]:
    """The tools among `tools` that a refusal of the request `body` names, by their name or their place."""
    if status not in _STATUSES or _FOREIGN.encode() not in tools:
        return frozenset()
    names = set(_names(as_list(decode_json(tools))))
    found = {name for name in names if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-]|\.\w)", sentence)}
    if not found and (position := re.search(_POSITION, sentence)):
        found = names & {_name_at(as_object(decode_json(body)).get("tools"), *position.groups())}
    return frozenset(found)


def without_tools(tools: bytes, names: Collection[str]) -> bytes:
    """An encoded list of tools without those of these names; the same bytes where there is none."""
    if not names or not any(name.rpartition(".")[2].encode() in tools for name in names):
        return tools
    remaining: list[dict[str, Any]] = []
    for tool in map(as_object, as_list(decode_json(tools))):
        if tool.get("name") in names:
            continue
        inner = [part for part in as_list(tool.get("tools")) if f"{tool['name']}.{part.get('name')}" not in names]
        if inner or "tools" not in tool:
            remaining.append({**tool, "tools": inner} if inner else tool)
    return encode_json(remaining)


def _names(tools: list[Any]) -> Iterator[str]:
    """Names of foreign tools; those in a namespace with its name in front."""
    for tool in map(as_object, tools):
        name = str(tool.get("name"))
        if name.startswith(_FOREIGN):
            yield name
            yield from (f"{name}.{part.get('name')}" for part in as_list(tool.get("tools")))


def _name_at(tools: object, index: str, inner: str | None) -> str:
    entry = _entry(tools, int(index))
    name = str(as_object(entry.get("function", entry)).get("name"))
    return f"{name}.{_entry(entry.get('tools'), int(inner)).get('name')}" if inner else name


def _entry(entries: object, index: int) -> dict[str, Any]:
    values = as_list(entries)
    return as_object(values[index]) if index < len(values) else {}

"""Messages of servers that the SDK would refuse as a whole for one odd part. Imports the SDK."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import mcp_types as types
from mcp.shared.message import SessionMessage
from pydantic import BaseModel

from codex_py.protocol.encoding import as_list, as_object

# The lists in the results of servers. We read their entries one by one.
_LISTS: Final = ("prompts", "resources", "resourceTemplates", "contents", "messages")
# The SDK wants these of a result beside its list.
_CACHE_FIELDS: Final = ("resultType", "ttlMs", "cacheScope")
# Results that the SDK reads itself: those of a handshake, and questions to the user.
_READ_BY_SDK: Final = ("capabilities", "inputRequests")
_AS_SENT: Final = "codex-py/as-sent"
# Deeper values cannot be copied by the SDK.
_MAX_DEPTH: Final = 20
# Escapes in the order they are read: a backslash that is escaped itself is the beginning of none.
_SURROGATES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class _AsSent(str):
    """Carries a result through the SDK, which checks and copies the text alone."""

    result: dict[str, Any]


class LenientStream:
    """The messages of a stream; results pass the SDK's checks, whatever stands in their lists (`as_sent`)."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> LenientStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> LenientStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        item = await anext(self._inner)
        if not isinstance(item, Exception) and isinstance(item.message, types.JSONRPCResponse):
            item.message.result = _checked(item.message.result)
        return item


def as_sent(result: BaseModel) -> dict[str, Any]:
    """A result as the server has sent it."""
    sent = as_object(getattr(result, "meta", None)).get(_AS_SENT)
    if isinstance(sent, _AsSent):
        return sent.result
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def _checked(result: dict[str, Any]) -> dict[str, Any]:
    if any(key in result for key in _READ_BY_SDK):
        return result
    sent = _AsSent()
    sent.result = result
    # Whether this answers a call, which needs `content`, is known to the SDK only. It ignores the field elsewhere.
    checked: dict[str, Any] = {"content": [], "_meta": {_AS_SENT: sent}}
    checked |= {key: result[key] for key in _CACHE_FIELDS if key in result}
    checked |= {key: [] for key in _LISTS if isinstance(result.get(key), list)}
    if isinstance(result.get("tools"), list):
        # Of tools the SDK needs the names, and the parameters that are sent as headers.
        checked["tools"] = [tool for entry in as_list(result["tools"]) if (tool := _tool(as_object(entry)))]
    return checked


def _tool(entry: dict[str, Any]) -> dict[str, Any] | None:
    if not isinstance(name := entry.get("name"), str):
        return None
    properties = as_object(as_object(entry.get("inputSchema")).get("properties"))
    known = {key: _shallow(value, _MAX_DEPTH) for key, value in properties.items() if isinstance(value, dict)}
    return {"name": name, "inputSchema": {"type": "object", "properties": known}}


def _shallow(value: Any, depth: int) -> Any:
    if depth == 0:
        return None
    if fields := as_object(value):
        return {key: _shallow(part, depth - 1) for key, part in fields.items()}
    return [_shallow(part, depth - 1) for part in parts] if (parts := as_list(value)) else value


def read_message(line: bytes) -> types.JSONRPCMessage | None:
    """A message of a server; one with lone surrogates, bad UTF-8 or much depth too. None for any other line."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        text = without_lone_surrogates(line).decode(errors="replace")
        return types.jsonrpc_message_adapter.validate_python(json.loads(text), by_name=False)
    except (ValueError, RecursionError):
        return None


def without_lone_surrogates(raw: bytes) -> bytes:
    r"""JSON text in which `\ufffd` stands for each escape that is one half of a character."""
    return _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)

"""Messages of servers, repaired before the SDK checks them as a whole: one odd tool would lose all. Imports the SDK."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, NamedTuple

import mcp_types as types
from mcp.shared.message import SessionMessage
from mcp_types.methods import validate_server_result

from codex_py.mcp.schemas import parameters_for_model
from codex_py.protocol.encoding import as_list, as_object
from codex_py.text.sanitize import sanitize_line

_STRICTEST_VERSION: Final = "2025-11-25"
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_MAX_SHOWN_NAME: Final = 100
# Escapes in the order they are read: a backslash that is escaped itself is the beginning of none.
_SURROGATES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


class RepairedStream:
    """The messages of a stream, with lists of tools repaired; `on_unusable` gets a line for each tool left out."""

    def __init__(self, inner: Any, on_unusable: Callable[[str], None]) -> None:
        self._inner = inner
        self._on_unusable = on_unusable

    @property
    def last_context(self) -> Any:
        """The context of the inner stream, which the SDK asks for."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._repaired(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> RepairedStream:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._repaired(await self._inner.__anext__())

    async def __aenter__(self) -> RepairedStream:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)

    def _repaired(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, Exception) and isinstance(item.message, types.JSONRPCResponse):
            result = item.message.result
            if isinstance(result.get("tools"), list):
                judged = [_judge(entry) for entry in as_list(result["tools"])]
                result["tools"] = [tool.entry for tool in judged if tool.entry is not None]
                for tool in judged:
                    if tool.entry is None:
                        self._on_unusable(f"its tool {tool.problem}")
        return item


class _JudgedTool(NamedTuple):
    entry: dict[str, Any] | None
    """The tool as the SDK takes it, None for one that nobody can call."""
    problem: str = ""
    """Its name and why it is left out."""


def _judge(entry: object) -> _JudgedTool:
    tool = dict(as_object(entry))
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        return _JudgedTool(None, "without a name is left out")
    try:
        parameters = parameters_for_model(tool.get("inputSchema"))
    except ValueError as error:
        return _JudgedTool(None, f"`{sanitize_line(name)[:_MAX_SHOWN_NAME]}` is left out: {error}")
    # With a schema for answers the SDK refuses an answer that does not fit, which the model can read nevertheless.
    tool.pop("outputSchema", None)
    if _is_accepted(tool):
        return _JudgedTool(tool)
    hints = {hint: value for hint, value in as_object(tool.get("annotations")).items() if hint in _HINTS}
    texts = {key: tool[key] for key in ("title", "description") if isinstance(tool.get(key), str)}
    repaired: dict[str, Any] = {
        "name": name,
        **texts,
        "inputSchema": parameters,
        "annotations": {hint: value for hint, value in hints.items() if isinstance(value, bool)},
        "_meta": as_object(tool.get("_meta")),
    }
    return _JudgedTool(repaired)


def _is_accepted(tool: dict[str, Any]) -> bool:
    with suppress(ValueError, RecursionError):
        validate_server_result("tools/list", _STRICTEST_VERSION, {"tools": [tool]})
        types.Tool.model_validate(tool, by_name=False).model_dump_json()
        return True
    return False


def parse_odd_message(line: bytes) -> types.JSONRPCMessage | None:
    """A message that the SDK does not read, for lone surrogates, bad UTF-8 or depth; None when it is no message."""
    try:
        text = without_lone_surrogates(line).decode(errors="replace")
        return types.jsonrpc_message_adapter.validate_python(json.loads(text), by_name=False)
    except (ValueError, RecursionError):
        return None


def without_lone_surrogates(raw: bytes) -> bytes:
    r"""JSON text in which `\ufffd` stands for each escape that is one half of a character."""
    return _SURROGATES.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)

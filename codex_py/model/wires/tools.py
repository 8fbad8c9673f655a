"""The tools of a prompt as functions, for the wires of APIs that know neither namespaces nor freeform grammars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from codex_py.model.wires.history import flat_name
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.value import Value

_FREEFORM: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"input": {"type": "string", "description": "The whole input of the tool."}},
    "required": ["input"],
    "additionalProperties": False,
}
_NO_PARAMETERS: Final[Mapping[str, Any]] = {"type": "object", "properties": {}}


def read_index(value: object) -> int | None:
    """The index of a call or a block in a stream, which some servers write as `"0"` or `0.0`; None for none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value[:9])
    return int(value) if isinstance(value, int | float) and abs(value) < 1e9 else None


class FunctionTool(Value):
    """A tool under the name that the server is sent. `namespace` and `original` are its name here."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    namespace: str | None
    original: str


class ToolTable:
    """The tools of the last prompt. Reads the encoded array of Responses tools, again only when it has changed."""

    def __init__(self) -> None:
        self._encoded = b"[]"
        self.tools: tuple[FunctionTool, ...] = ()
        self._by_name: dict[str, FunctionTool] = {}

    def load(self, encoded: bytes) -> bool:
        """Take the tools of a prompt; whether they differ from those before. Tools of a provider are left out."""
        if encoded == self._encoded:
            return False
        self._encoded = encoded
        self._by_name = {}
        for value in as_list(decode_json(encoded)):
            for tool in _functions(as_object(value), None):
                self._by_name.setdefault(tool.name, tool)
        self.tools = tuple(self._by_name.values())
        return True

    def name_fields(self, name: str) -> dict[str, str]:
        """The fields that name a tool in a `function_call` item, from the name that the model has called."""
        tool = self._by_name.get(name)
        if tool is None or tool.namespace is None:
            return {"name": tool.original if tool else name}
        return {"name": tool.original, "namespace": tool.namespace}


def _functions(value: dict[str, Any], namespace: str | None) -> list[FunctionTool]:
    name, description = value.get("name"), value.get("description")
    described = description if isinstance(description, str) else ""
    match value.get("type"):
        case "namespace" if isinstance(name, str):
            return [
                tool
                for inner in as_list(value.get("tools"))
                for tool in _functions({"type": "function", **as_object(inner)}, name)
            ]
        case "function" if isinstance(name, str):
            parameters = as_object(value.get("parameters")) or _NO_PARAMETERS
            return [FunctionTool(flat_name(namespace, name), described, parameters, namespace, name)]
        case "custom" if isinstance(name, str):
            return [FunctionTool(flat_name(namespace, name), described, _FREEFORM, namespace, name)]
        case _:
            return []

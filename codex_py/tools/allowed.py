"""The tools of MCP servers cut down to those that an agent may use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import ToolCall
from codex_py.tools.registry import ForeignTools
from codex_py.tools.spec import Tool


class AllowedTools:
    """`tools` whose names `allows` accepts; a name of a namespace's tool is that of both with `__` between."""

    def __init__(self, tools: ForeignTools, allows: Callable[[str], bool]) -> None:
        self._tools = tools
        self._allows = allows

    def specs(self) -> Sequence[dict[str, Any]]:
        """What the model is shown of them."""
        return [cut for spec in self._tools.specs() if (cut := self._allowed_of(spec)) is not None]

    def find(self, call: ToolCall) -> Tool | None:
        """The tool a call means, None when it may not be used."""
        name = _full(call.namespace or "", call.name)
        return self._tools.find(call) if self._allows(name) else None

    def _allowed_of(self, spec: dict[str, Any]) -> dict[str, Any] | None:
        name = str(spec.get("name", ""))
        if spec.get("type") != "namespace":
            return spec if self._allows(name) else None
        inner = [
            tool for tool in as_list(spec.get("tools")) if self._allows(_full(name, str(as_object(tool).get("name"))))
        ]
        return {**spec, "tools": inner} if inner else None


def _full(namespace: str, name: str) -> str:
    return f"{namespace.rstrip('_')}__{name}" if namespace else name

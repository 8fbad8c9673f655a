"""The names under which the model sees servers' tools, in a namespace or flat, and their parameters."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from codex_py.protocol.encoding import as_list, as_object

MAX_LETTERS: Final = 64
_PREFIX: Final = "mcp__"
_HASH_LETTERS: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
# Anthropic refuses a request with any other name of a parameter: `^[a-zA-Z0-9_.-]{1,64}$`.
_ODD_IN_PARAMETERS: Final = re.compile(r"[^A-Za-z0-9_.-]")

_T = TypeVar("_T", bound=Hashable)


class McpToolRef(NamedTuple):
    """Where a tool lives: the names of its server and of the tool there."""

    server: str
    tool: str


class ToolNames:
    """The names of the tools of some servers; both forms lead back to the tool, whichever the model was shown."""

    def __init__(self, offered: Mapping[str, Iterable[str]]) -> None:
        self.namespaces: Final = distinct_names(sorted(offered), _namespace)
        self._inside: dict[str, dict[str, str]] = {}
        self._flat: dict[McpToolRef, str] = {}
        self._found: dict[tuple[str | None, str], McpToolRef] = {}
        for server, namespace in self.namespaces.items():
            names = distinct_names(sorted(offered[server]), _plain)
            self._inside[server] = names
            for tool, name in names.items():
                self._found[namespace, name] = McpToolRef(server, tool)
        flat = [McpToolRef(server, tool) for server in self._inside for tool in self._inside[server]]
        for ref, name in distinct_names(
            flat, lambda tool_ref: f"{self.namespaces[tool_ref.server]}__{_plain(tool_ref.tool)}"
        ).items():
            self._flat[ref] = name
            self._found[None, name] = ref

    def inside(self, server: str, tool: str) -> str:
        """The name of a tool in its server's namespace."""
        return self._inside[server][tool]

    def flat(self, server: str, tool: str) -> str:
        """The name of a tool where there are no namespaces, at most 64 letters."""
        return self._flat[McpToolRef(server, tool)]

    def find(self, namespace: str | None, name: str) -> McpToolRef | None:
        """The tool of a call. An unknown name in the namespace of a known server counts as a tool of it."""
        ref = self._found.get((namespace, name))
        if ref is not None:
            return ref
        # The longest first: the name of one server may begin like that of another.
        for server, own in sorted(self.namespaces.items(), key=lambda pair: -len(pair[1])):
            if namespace == own:
                return McpToolRef(server, name)
            if namespace is None and name.startswith(f"{own}__"):
                return McpToolRef(server, name.removeprefix(f"{own}__"))
        return None


def parameter_names(schema: dict[str, Any]) -> dict[str, str]:
    """The names under which the model is shown those parameters of a schema whose own names an API would refuse."""
    found: set[str] = set()
    waiting: list[object] = [schema]
    while waiting:
        value = waiting.pop()
        fields = as_object(value)
        found |= as_object(fields.get("properties")).keys()
        waiting += [*fields.values(), *as_list(value)]
    shown = distinct_names(sorted(found), lambda name: _ODD_IN_PARAMETERS.sub("_", name) or "_")
    return {name: other for name, other in shown.items() if name != other}


def with_own_names(arguments: Any, names: Mapping[str, str]) -> Any:
    """The arguments of a call with the server's names; `names` are the `parameter_names`."""
    own = {shown: name for name, shown in names.items()}

    def renamed(value: Any) -> Any:
        if fields := as_object(value):
            return {own.get(name, name): renamed(inner) for name, inner in fields.items()}
        return [renamed(inner) for inner in parts] if (parts := as_list(value)) else value

    return renamed(arguments) if own else arguments


def distinct_names(items: Iterable[_T], name_of: Callable[[_T], str]) -> dict[_T, str]:
    """A name for each, at most 64 letters; one too long or shared with another ends in a hash of what it names."""
    full_names = {item: name_of(item) for item in items}
    counts = Counter(full_names.values())
    fits = {item: counts[name] == 1 and len(name) <= MAX_LETTERS for item, name in full_names.items()}
    return {item: name if fits[item] else _hashed(name, item) for item, name in full_names.items()}


def _hashed(name: str, item: object) -> str:
    digest = hashlib.sha256(repr(item).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MAX_LETTERS - _HASH_LETTERS - 1]}_{digest}"


def _namespace(server: str) -> str:
    return _PREFIX + _plain(server).replace("-", "_")


def _plain(name: str) -> str:
    return _ODD.sub("_", name)

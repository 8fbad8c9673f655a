"""What the tools of servers are called towards the model: in a namespace for each server, or flat."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

MAX_LETTERS: Final = 64
_PREFIX: Final = "mcp__"
_HASH_LETTERS: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")

_T = TypeVar("_T", bound=Hashable)


class McpToolRef(NamedTuple):
    """Where a tool lives: the names of its server and of the tool there."""

    server: str
    tool: str


class ToolNames:
    """The names of the tools of some servers; both forms lead back to the tool, whichever the model was shown."""

    def __init__(self, offered: Mapping[str, Iterable[str]]) -> None:
        self.namespaces: Final = _unlike(sorted(offered), _namespace)
        self._inside: dict[str, dict[str, str]] = {}
        self._flat: dict[McpToolRef, str] = {}
        self._found: dict[tuple[str | None, str], McpToolRef] = {}
        for server, namespace in self.namespaces.items():
            names = _unlike(sorted(offered[server]), _plain)
            self._inside[server] = names
            for tool, name in names.items():
                self._found[namespace, name] = McpToolRef(server, tool)
        flat = [McpToolRef(server, tool) for server in self._inside for tool in self._inside[server]]
        for ref, name in _unlike(
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
        """The tool a call means. A tool nobody has heard of may still be one of a server that is known."""
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


def _unlike(items: Iterable[_T], name_of: Callable[[_T], str]) -> dict[_T, str]:
    """A name for each, at most 64 letters; one too long or shared with another ends in a hash of what it names."""
    full_names = {item: name_of(item) for item in items}
    counts = Counter(full_names.values())
    return {
        item: name if counts[name] == 1 and _fits(name) else _hashed(name, item) for item, name in full_names.items()
    }


def _fits(name: str) -> bool:
    return len(name) <= MAX_LETTERS


def _hashed(name: str, item: object) -> str:
    digest = hashlib.sha256(repr(item).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MAX_LETTERS - _HASH_LETTERS - 1]}_{digest}"


def _namespace(server: str) -> str:
    return _PREFIX + _plain(server).replace("-", "_")


def _plain(name: str) -> str:
    return _ODD.sub("_", name)

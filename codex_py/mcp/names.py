"""What the tools of servers are called towards the model: in a namespace for each server, or flat."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

MOST_LETTERS: Final = 64
_PREFIX: Final = "mcp__"
_HASH_LETTERS: Final = 8
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")

_T = TypeVar("_T", bound=Hashable)


class ToolPlace(NamedTuple):
    """Where a tool lives: the names of its server and of the tool there."""

    server: str
    tool: str


class ToolNames:
    """The names of the tools of some servers; both forms lead back to the tool, whichever the model was shown."""

    def __init__(self, offered: Mapping[str, Iterable[str]]) -> None:
        self.namespaces: Final = _unlike(sorted(offered), _namespace)
        self._inside: dict[str, dict[str, str]] = {}
        self._flat: dict[ToolPlace, str] = {}
        self._found: dict[tuple[str | None, str], ToolPlace] = {}
        for server, namespace in self.namespaces.items():
            names = _unlike(sorted(offered[server]), _plain)
            self._inside[server] = names
            for tool, name in names.items():
                self._found[namespace, name] = ToolPlace(server, tool)
        flat = [ToolPlace(server, tool) for server in self._inside for tool in self._inside[server]]
        for place, name in _unlike(flat, lambda one: f"{self.namespaces[one.server]}__{_plain(one.tool)}").items():
            self._flat[place] = name
            self._found[None, name] = place

    def inside(self, server: str, tool: str) -> str:
        """The name of a tool in its server's namespace."""
        return self._inside[server][tool]

    def flat(self, server: str, tool: str) -> str:
        """The name of a tool where there are no namespaces, at most 64 letters."""
        return self._flat[ToolPlace(server, tool)]

    def find(self, namespace: str | None, name: str) -> ToolPlace | None:
        """The tool a call means. A tool nobody has heard of may still be one of a server that is known."""
        place = self._found.get((namespace, name))
        if place is not None:
            return place
        # The longest first: the name of one server may begin like that of another.
        for server, own in sorted(self.namespaces.items(), key=lambda pair: -len(pair[1])):
            if namespace == own:
                return ToolPlace(server, name)
            if namespace is None and name.startswith(f"{own}__"):
                return ToolPlace(server, name.removeprefix(f"{own}__"))
        return None


def _unlike(ones: Iterable[_T], named: Callable[[_T], str]) -> dict[_T, str]:
    """A name for each, at most 64 letters; one too long or shared with another ends in a hash of what it names."""
    wanted = {one: named(one) for one in ones}
    counts = Counter(wanted.values())
    return {one: name if counts[name] == 1 and _fits(name) else _hashed(name, one) for one, name in wanted.items()}


def _fits(name: str) -> bool:
    return len(name) <= MOST_LETTERS


def _hashed(name: str, one: object) -> str:
    digest = hashlib.sha256(repr(one).encode()).hexdigest()[:_HASH_LETTERS]
    return f"{name[: MOST_LETTERS - _HASH_LETTERS - 1]}_{digest}"


def _namespace(server: str) -> str:
    return _PREFIX + _plain(server).replace("-", "_")


def _plain(name: str) -> str:
    return _ODD.sub("_", name)

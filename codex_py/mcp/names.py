"""The names under which the model sees servers' tools, in a namespace or flat, and prompts as commands."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from codex_py.errors import UserError
from codex_py.mcp.connections import ServerState
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.status import PromptCommand

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


def prompt_commands(states: Iterable[ServerState]) -> tuple[PromptCommand, ...]:
    """The commands for the prompts these servers offer, sorted by name."""
    offered = {state.server.name: known.prompts for state in states if (known := state.known)}
    names = ToolNames({server: [prompt.name for prompt in prompts] for server, prompts in offered.items()})
    commands = [
        PromptCommand(names.flat(server, prompt.name), prompt.description, prompt.arguments, server, prompt.name)
        for server, prompts in offered.items()
        for prompt in prompts
    ]
    return tuple(sorted(commands, key=lambda command: command.name))


def read_arguments(command: PromptCommand, typed: str) -> dict[str, str]:
    """The arguments in what was typed; the last one takes all words that are left. Raises `UserError`."""
    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise UserError(f"cannot read `{typed}`: {error}") from error
    names = [argument.name for argument in command.arguments]
    values: dict[str, str] = {}
    plain: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if equals and name in names:
            values[name] = value
        else:
            plain.append(word)
    free = [name for name in names if name not in values]
    if plain and not free:
        raise UserError(f"`/{command.name}` takes {len(names)} arguments, and `{plain[0]}` is one more")
    for index, name in enumerate(free[: len(plain)]):
        is_last = index == len(free) - 1
        values[name] = " ".join(plain[index:]) if is_last else plain[index]
    missing = [argument.name for argument in command.arguments if argument.required and argument.name not in values]
    if missing:
        raise UserError(f"`/{command.name}` needs `{missing[0]}`", hint=f"give {' '.join(names)}")
    return values


def prompt_text(answer: Mapping[str, Any]) -> str:
    """The messages of a `GetPromptResult` as one text."""
    messages = [as_object(message) for message in as_list(answer.get("messages"))]
    return "\n\n".join(text for message in messages if (text := _text_of(message)))


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


def _text_of(message: Mapping[str, Any]) -> str:
    content = as_object(message.get("content"))
    text = content.get("text") or as_object(content.get("resource")).get("text")
    return text if isinstance(text, str) else ""

"""The prompts of MCP servers as commands: their arguments as they are typed, and their text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

from codex_py.errors import UserError
from codex_py.mcp.connections import ServerState
from codex_py.mcp.names import ToolNames
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.status import PromptCommand


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


def _text_of(message: Mapping[str, Any]) -> str:
    content = as_object(message.get("content"))
    text = content.get("text") or as_object(content.get("resource")).get("text")
    return text if isinstance(text, str) else ""

"""The prompts of MCP servers as commands a user types: which there are, and the text one of them becomes."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from codex_py.core.session_mcp import SessionMcp
from codex_py.errors import UserError
from codex_py.mcp.catalog import PromptArgument
from codex_py.mcp.names import ToolNames


class PromptCommand(NamedTuple):
    """A command, without its slash; `arguments` are given in this order, or as `name=value`."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    server: str
    prompt: str


def prompt_commands(servers: SessionMcp | None) -> tuple[PromptCommand, ...]:
    """The commands there are now, sorted by name: `mcp__SERVER__PROMPT`."""
    if servers is None:
        return ()
    found = servers.prompts()
    offered: dict[str, list[str]] = {}
    for server, prompt in found:
        offered.setdefault(server, []).append(prompt.name)
    names = ToolNames(offered)
    commands = [
        PromptCommand(
            names.flat(server, mcp_prompt.name), mcp_prompt.description, mcp_prompt.arguments, server, mcp_prompt.name
        )
        for server, mcp_prompt in found
    ]
    return tuple(sorted(commands))


async def fill_prompt(servers: SessionMcp, command: PromptCommand, typed: str) -> str:
    """The text to send for a command and what was typed after it.

    Raises `UserError` when an argument is missing or too many are given, and when the server does not answer.
    """
    return await servers.prompt_text(command.server, command.prompt, read_arguments(command, typed))


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

"""MCP servers for front ends: starting one to see what it offers or to sign in at it, and prompts as commands."""

from __future__ import annotations

import asyncio
import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from codex_py.core.mcp_login import browser_sign_in
from codex_py.core.session_mcp import SessionMcp
from codex_py.errors import UserError
from codex_py.mcp.catalog import Catalog, PromptArgument
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext, McpFailed
from codex_py.mcp.names import ToolNames
from codex_py.mcp.servers import McpServer
from codex_py.process.sweep import MARKER, kill_marked
from codex_py.protocol.questions import Question


class McpCheck(NamedTuple):
    """How a server did; `error` is None when it came up. `stderr` are the last lines it said."""

    name: str
    seconds: float
    catalog: Catalog | None
    error: str | None
    stderr: Sequence[str]


async def try_server(
    server: McpServer, context: McpContext, *, show: Callable[[str], None] | None = None, port: int | None = None
) -> McpCheck:
    """Start a server, learn what it offers, and end it with all it has started.

    With `show`, which hears the address for a browser, the user signs in where the server wants that.
    """
    mark = f"mcp-{os.getpid()}-{os.urandom(8).hex()}"
    connections = McpConnections([server], context.replace(mark={MARKER: mark}), _Nobody(context.cwd))
    [state] = connections.states
    began = time.monotonic()
    error: str | None = None
    try:
        async with browser_sign_in(context.home, port, show) if show else nullcontext() as sign_in:
            await connections.link(server.name, sign_in=sign_in)
    except McpFailed as failure:
        error = str(failure)
    finally:
        seconds = time.monotonic() - began
        await connections.close()
        await asyncio.to_thread(kill_marked, mark)
    return McpCheck(server.name, seconds, state.live, error, state.stderr)


class _Nobody:
    """The host of a server that nobody uses yet."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def ask(self, question: Question) -> str | None:
        return None

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None

    def roots(self) -> tuple[Path, ...]:
        return (self._directory,)

    def warn(self, message: str) -> None:
        """What goes wrong is in the trial."""


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

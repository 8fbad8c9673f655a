"""Starting one MCP server by itself: to see what it offers, to learn it, or to sign in at it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from codex_py.core.mcp_login import browser_sign_in
from codex_py.mcp.catalog import Catalog
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext, McpFailed
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

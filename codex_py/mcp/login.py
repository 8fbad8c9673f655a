"""Reaching one server for a person: signing in at it with a browser, and trying out what it offers."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from codex_py.auth.oauth_callback import listen_for_callback
from codex_py.errors import ModelError, UserError
from codex_py.mcp.catalog import Catalog
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext, McpFailed, McpHost, SignedIn, SignIn
from codex_py.mcp.servers import McpServer
from codex_py.process.sweep import MARKER, kill_marked


@asynccontextmanager
async def browser_sign_in(home: Path, port: int | None, show: Callable[[str], None]) -> AsyncGenerator[SignIn, None]:
    """A way to sign in while the block is open; `show` gets the address for the browser.

    The browser comes back to this machine alone, once, within five minutes. Raises `McpFailed` for a port that is
    taken; waiting raises it when nobody came or the sign-in was refused.
    """
    async with AsyncExitStack() as stack:
        try:
            # Nobody can guess this state, so nothing is accepted before the real one is known.
            listening = listen_for_callback(secrets.token_urlsafe(32), home, port=port or 0)
            callback = await stack.enter_async_context(listening)
        except UserError as error:
            raise McpFailed(f"{error}; free it, or set another `mcp_oauth_callback_port`") from error
        state = ""

        async def put(url: str) -> None:
            nonlocal state
            state = parse_qs(urlsplit(url).query).get("state", [secrets.token_urlsafe(32)])[0]
            callback.expect(state)
            show(url)

        async def wait() -> SignedIn:
            try:
                code = await callback.wait()
            except ModelError as error:
                raise McpFailed(str(error).partition(";")[0]) from error
            return SignedIn(code, state, callback.issuer)

        yield SignIn(callback.uri, put, wait)


class McpCheck(NamedTuple):
    """How a server did; `error` is None when it came up. `stderr` is the last lines it wrote there."""

    name: str
    seconds: float
    catalog: Catalog | None
    error: str | None
    stderr: Sequence[str]


async def try_server(
    server: McpServer, context: McpContext, *, show: Callable[[str], None] | None = None, port: int | None = None
) -> McpCheck:
    """Start a server, list what it offers, and end it with all it has started.

    With `show`, which gets the address for a browser, the user signs in where the server wants that.
    """
    mark = f"mcp-{os.getpid()}-{os.urandom(8).hex()}"
    connections = McpConnections([server], context.replace(mark={MARKER: mark}), _NoSession(context.cwd))
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


class _NoSession(McpHost):
    """The host of a server outside a session. The check reports what goes wrong."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def roots(self) -> tuple[Path, ...]:
        return (self._directory,)

"""Signing in at an MCP server with a browser on this machine."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from codex_py.auth.oauth_callback import listen_for_callback
from codex_py.errors import ModelError, UserError
from codex_py.mcp.host import McpFailed, SignedIn, SignIn


@asynccontextmanager
async def browser_sign_in(home: Path, port: int | None, show: Callable[[str], None]) -> AsyncGenerator[SignIn, None]:
    """A way to sign in, for as long as the block is open; `show` hears the address for the browser.

    The browser comes back to this machine alone, once, within five minutes. Raises `McpFailed` for a port that is
    taken; waiting raises it when nobody came or the sign-in was refused.
    """
    async with AsyncExitStack() as stack:
        try:
            # Nobody can guess it, so that nothing is taken before the real one is known.
            listening = listen_for_callback(secrets.token_urlsafe(32), home, port=port or 0)
            callback = await stack.enter_async_context(listening)
        except UserError as error:
            raise McpFailed(f"{error}; free it, or set another `mcp_oauth_callback_port`") from error
        states: list[str] = []

        async def put(url: str) -> None:
            states.append(parse_qs(urlsplit(url).query).get("state", [secrets.token_urlsafe(32)])[0])
            callback.expect(states[-1])
            show(url)

        async def wait() -> SignedIn:
            try:
                code = await callback.wait()
            except ModelError as error:
                raise McpFailed(str(error).partition(";")[0]) from error
            return SignedIn(code, states[-1], callback.issuer)

        yield SignIn(callback.uri, put, wait)

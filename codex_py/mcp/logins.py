"""Which servers this machine is signed in at."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, TypeAlias

from codex_py.mcp.host import TokenFile
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import as_object

AuthStatus: TypeAlias = Literal["unsupported", "bearer_token", "o_auth", "not_logged_in"]


def login_key(server: McpServer) -> str:
    """The name a login is kept under: that of the server, and what tells its address from another's."""
    return f"{server.name}|{hashlib.sha256((server.url or '').encode()).hexdigest()[:16]}"


def auth_status(server: McpServer, tokens: TokenFile) -> AuthStatus:
    """How requests to a server are authorized. Whether one without a login wants one, only the server knows."""
    if server.url is None:
        return "unsupported"
    if server.authorizes:
        return "bearer_token"
    return "o_auth" if _entry(server, tokens).get("tokens") else "not_logged_in"


def forget_login(server: McpServer, tokens: TokenFile) -> bool:
    """Remove the login at a server; False when there was none."""
    everything = dict(tokens.load())
    if everything.pop(login_key(server), None) is None:
        return False
    tokens.save(everything)
    return True


@contextmanager
def renew_login(server: McpServer, tokens: TokenFile) -> Generator[None, None, None]:
    """Forget the login at a server for another one; it is put back when the block does not come to its end."""
    stored = _entry(server, tokens)
    forget_login(server, tokens)
    try:
        yield
    except BaseException:
        if stored:
            tokens.save({**tokens.load(), login_key(server): stored})
        raise


def login_secrets(server: McpServer, tokens: TokenFile) -> tuple[str, ...]:
    """The tokens of a login, which nobody else may read."""
    stored = as_object(_entry(server, tokens).get("tokens"))
    return tuple(value for name in ("access_token", "refresh_token") if isinstance(value := stored.get(name), str))


def _entry(server: McpServer, tokens: TokenFile) -> dict[str, object]:
    return as_object(tokens.load().get(login_key(server)))

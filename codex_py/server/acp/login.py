"""How a client lets the user log in, and whether they are."""

from __future__ import annotations

from typing import Final

from codex_py.core.model_connection import has_login
from codex_py.errors import LoginNeeded, UserError
from codex_py.server.acp.content import Json
from codex_py.server.host import ServerHostProtocol
from codex_py.server.messages import RpcError

AUTH_REQUIRED: Final = -32000
_LOGIN: Final = "login"
_TERMINAL: Final = "terminal-login"
_HOW: Final = "run `codex-py login` in a terminal, or set `OPENAI_API_KEY` where codex-py is started"


def auth_methods(*, has_terminal: bool) -> list[Json]:
    """The ways to log in. With `has_terminal` the client starts a program in one."""
    methods: list[Json] = [
        {"id": _LOGIN, "name": "Log in with codex-py", "description": "Run `codex-py login` in a terminal first"},
    ]
    if has_terminal:
        terminal = {"type": "terminal", "id": _TERMINAL, "name": "Log in with ChatGPT", "args": ["--login"]}
        methods.append(terminal)
    return methods


def check_login(host: ServerHostProtocol, method: str) -> None:
    """Raise `RpcError` where there is no login and no key for the configured provider, and for an unknown method."""
    if method not in (_LOGIN, _TERMINAL):
        raise RpcError(f"invalid request: there is no authentication method `{method[:80]}`")
    try:
        loaded = host.load(host.home.parent, {})
        if has_login(loaded.config, env=host.env, home=host.home):
            return
    except UserError as error:
        raise login_error(error) from error
    raise RpcError(f"nobody is logged in; {_HOW}", code=AUTH_REQUIRED)


def login_error(error: UserError) -> RpcError:
    """An error of ours as the protocol has it."""
    if isinstance(error, LoginNeeded):
        return RpcError(f"{error}; {_HOW}", code=AUTH_REQUIRED)
    return RpcError(f"{error}; {error.hint}" if error.hint else str(error))

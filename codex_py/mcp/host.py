"""The requests a server may make of its client, and the servers that this machine is signed in to."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from codex_py.errors import CodexError
from codex_py.mcp.servers import McpServer
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_object
from codex_py.protocol.policy import ReadOnly, SandboxPolicy
from codex_py.protocol.questions import Question, QuestionAnswer
from codex_py.protocol.value import Value


class McpFailed(CodexError):
    """A server could not be reached, or did not do what was asked; the message says which and why."""


class McpLoginNeeded(McpFailed):
    """The server wants a login that this machine does not have."""


class Progress(NamedTuple):
    """How far a call is: `total` is None where the server does not say; `message` may be empty."""

    done: float
    total: float | None
    message: str


class SignedIn(NamedTuple):
    """The values that a browser brings back from a sign-in."""

    code: str
    state: str
    issuer: str | None


class SignIn(Value):
    """How a user signs in: `show` puts the address before them, `wait` comes back with what the browser brought."""

    redirect_uri: str
    show: Callable[[str], Awaitable[None]]
    wait: Callable[[], Awaitable[SignedIn]]


class TokenFile(Protocol):
    """Where the logins of servers are kept, as one JSON object."""

    def load(self) -> Mapping[str, Any]: ...
    def save(self, login: Mapping[str, Any]) -> None: ...


class McpHost(Protocol):
    """The session, towards its servers; its own methods are those of a host without a user or a model."""

    async def ask(self, question: Question) -> QuestionAnswer | None:
        """The user's answer; None when there is none, or nobody to ask."""
        return None

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Let the model answer a `sampling/createMessage` request, in the protocol's form; None refuses."""
        return None

    def roots(self) -> tuple[Path, ...]:
        """The directories the session works in."""
        ...

    def warn(self, message: str) -> None:
        """Show the user a line, once."""


class CommandLimits(NamedTuple):
    """The sandbox policy of the session's commands now, and the session's working directory."""

    policy: SandboxPolicy
    cwd: Path


def _no_session() -> CommandLimits:
    return CommandLimits(ReadOnly(), Path("/"))


def _cannot_confine(server: McpServer, start: PreparedCommand, limits: CommandLimits) -> PreparedCommand:
    raise McpFailed("there is no sandbox for it here")


class McpContext(Value):
    """Where servers are started and what is kept of them.

    `env` is the user's environment. `mark` is given to every started server, so that all it leaves can be found.
    """

    home: Path
    cwd: Path
    env: Mapping[str, str]
    version: str
    tokens: TokenFile
    mark: Mapping[str, str]
    # Puts a server of a project or a plugin into the sandbox, or checks one that is let out. It must not have
    # changed since the user agreed to it. Called in a thread; raises `McpFailed`.
    confine: Callable[[McpServer, PreparedCommand, CommandLimits], PreparedCommand] = _cannot_confine
    limits: Callable[[], CommandLimits] = _no_session


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

"""What a server may ask of the program it talks to, and where its calls come from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from codex_py.errors import CodexError
from codex_py.mcp.servers import McpServer
from codex_py.protocol.policy import ReadOnly, SandboxPolicy
from codex_py.protocol.questions import Question
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
    """What a browser brings back from a sign-in."""

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
    """The session, towards its servers."""

    async def ask(self, question: Question) -> str | None:
        """The user's answer; None when there is none, or nobody to ask."""
        ...

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the model answers to a server (both `sampling/createMessage` of the protocol); None refuses."""
        ...

    def roots(self) -> tuple[Path, ...]:
        """The folders the session works in."""
        ...

    def warn(self, message: str) -> None:
        """Tell the user something, once."""
        ...


def _nothing() -> None:
    """What a server outside the sandbox has to release and to clean up."""


class ServerStart(NamedTuple):
    """A command line ready to start, with its variables.

    `fds` are inherited under their own numbers; `release` is called once it has started or failed to, `cleanup` once it
    has ended.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    release: Callable[[], None] = _nothing
    cleanup: Callable[[], None] = _nothing


class CommandLimits(NamedTuple):
    """What the commands of the session may do now, and the directory that it works in."""

    policy: SandboxPolicy
    cwd: Path


def _no_session() -> CommandLimits:
    return CommandLimits(ReadOnly(), Path("/"))


def _cannot_confine(server: McpServer, start: ServerStart, limits: CommandLimits) -> ServerStart:
    raise McpFailed("there is no sandbox for it here")


def _no_refusal(_: McpServer) -> str | None:
    """Nothing of such a server can change."""


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
    # Why a server of a project or a plugin must not be started now, None when it may: its files may have changed.
    refusal: Callable[[McpServer], str | None] = _no_refusal
    # What puts such a server into the sandbox; raises `McpFailed`. Both are called in a thread.
    confine: Callable[[McpServer, ServerStart, CommandLimits], ServerStart] = _cannot_confine
    limits: Callable[[], CommandLimits] = _no_session


def argv_of(server: McpServer) -> list[str]:
    """The words a server is started with."""
    return [server.command or "", *server.args]

"""The MCP servers of one session: what they may ask of it, when they start, and what happens at its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from codex_py.core.turn_context import TurnSettings
from codex_py.errors import UserError
from codex_py.mcp.catalog import McpPrompt
from codex_py.mcp.connections import McpConnections, ServerState
from codex_py.mcp.connectors import ConnectorRules
from codex_py.mcp.host import CommandLimits, McpContext, McpFailed, McpLoginNeeded, TokenFile, login_secrets
from codex_py.mcp.servers import McpServer
from codex_py.process.sweep import MARKER, Watchdog, kill_marked, set_watch
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.policy import asks_about
from codex_py.protocol.questions import AskUser, Question, QuestionAnswer
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.mcp_tools import McpTools

if TYPE_CHECKING:
    from codex_py.mcp.connection import Link

# Starting costs work, and the first request goes out before it.
_START_AFTER: Final = 0.25
# How long the first request waits for servers whose tools nobody knows yet.
_MEET_SECONDS: Final = 10.0


class McpSettings(Value):
    """What the servers of a session are started with. `keep` writes down a yes for good to a tool of a server.

    `login_port` is where a browser comes back to, None for any. `sample` asks the model for a server.
    """

    context: McpContext
    servers: tuple[McpServer, ...]
    namespaces: bool
    pictures: bool
    can_ask: bool
    keep: Callable[[str, str, str], None]
    sample: Callable[[Mapping[str, Any], TurnSettings], Awaitable[Mapping[str, Any]]]
    login_port: int | None = None
    connectors: ConnectorRules = ConnectorRules({})


class McpFrontEnd(Value):
    """The session, as far as its servers reach it."""

    ask: AskUser
    warn: Callable[[str], None]
    add_secrets: Callable[[Iterable[str]], None]
    settings: Callable[[], TurnSettings]


class SessionMcp:
    """Give it to the tools, `attach` it to the session, `begin` it when the first request goes out, `close` it."""

    def __init__(self, settings: McpSettings) -> None:
        self._settings = settings
        self._mark = f"mcp-{os.getpid()}-{os.urandom(8).hex()}"
        tokens = _ObservedTokens(settings.context.tokens, self._add_all_secrets)
        context = settings.context.replace(mark={MARKER: self._mark}, tokens=tokens, limits=self._limits)
        self.connections: Final = McpConnections(settings.servers, context, self)
        self.tools: Final = McpTools(
            self.connections,
            namespaces=settings.namespaces,
            pictures=settings.pictures,
            keep=settings.keep,
            rules=settings.connectors,
        )
        self._front_end: McpFrontEnd | None = None
        self._untold: list[str] = []
        self._starting: asyncio.Task[None] | None = None
        # The names of servers that were waited for.
        self._awaited: set[str] = set()
        self._watch: Watchdog | None = None

    def attach(self, front_end: McpFrontEnd) -> None:
        """Reach the session from now on."""
        self._front_end = front_end
        for server in self._settings.servers:
            self._add_secrets(server)
        if self._unmet():
            # Its tools are waited for with the first message: it starts while that is typed.
            self._starting = asyncio.create_task(self._start(0.0))

    def begin(self) -> None:
        """Start the servers in a moment; returns at once."""
        for note in self._untold:
            self.warn(note)
        self._untold.clear()
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(_START_AFTER))

    async def require(self) -> None:
        """Wait for the servers a session does not begin without; raises `UserError` for one that is not there."""
        required = [state for state in self.connections.states if state.server.required]
        if not required:
            return
        await self._start(0.0)
        await self.connections.settle(required)
        for state in required:
            if state.failure is not None:
                raise UserError(
                    str(state.failure), hint=f"it is `required`; `codex-py mcp test {state.server.name}` tells more"
                )
        self.tools.join()

    async def meet(self) -> bool:
        """Wait, once and for a limited time, for servers whose tools nobody knows yet. Whether there were any."""
        unmet = [state for state in self._unmet() if state.server.name not in self._awaited]
        if not unmet:
            return False
        self._awaited.update(state.server.name for state in unmet)
        await self._start(0.0)
        waiting = await self.connections.settle(unmet, seconds=0)
        if waiting:
            self.warn(f"waiting for {_named(waiting)}, not used before: {_MEET_SECONDS:g} s at most")
        for state in await self.connections.settle(waiting, seconds=_MEET_SECONDS):
            name = sanitize_line(state.server.name)
            self.warn(
                f"{_named([state])} has not answered within {_MEET_SECONDS:g} s: the turn goes on without its tools"
                f" (`codex-py mcp test {name}` shows why)"
            )
        self.tools.join()
        return True

    async def add(self, servers: Sequence[McpServer]) -> list[McpFailed]:
        """Start more servers and wait for them, signing in where one wants that; their tools can be shown then."""
        added = [self.connections.add(server) for server in servers]
        for state in added:
            state.signs_in = self._settings.can_ask
        for server in servers:
            self._add_secrets(server)
        await self._start(0.0)
        await self.connections.settle(added)
        failures: list[McpFailed] = []
        for state in added:
            failure = state.failure
            if isinstance(failure, McpLoginNeeded) and self._settings.can_ask:
                failure = await self._sign_in(state)
            failures += [failure] if failure is not None else []
        return failures

    def prompts(self) -> tuple[tuple[str, McpPrompt], ...]:
        """The prompts of all servers, with the names of those."""
        known = [(state.server.name, state.live or state.catalog) for state in self.connections.states]
        return tuple((name, prompt) for name, catalog in known if catalog for prompt in catalog.prompts)

    async def prompt_text(self, server: str, name: str, arguments: Mapping[str, str]) -> str:
        """A prompt, filled in, as one text to send. Raises `UserError`."""
        try:
            link: Link = await self.connections.link(server)
            answer = await link.get_prompt(name, dict(arguments))
        except McpFailed as error:
            raise UserError(f"cannot use the prompt `{name}` of `{server}`: {error}") from error
        messages = [as_object(message) for message in as_list(answer.get("messages"))]
        return "\n\n".join(text for message in messages if (text := _text_of(message)))

    async def close(self) -> None:
        """End every connection, and whatever the servers have left running."""
        if self._starting is not None:
            self._starting.cancel()
        await self.connections.close()
        if self._watch is not None:
            await asyncio.to_thread(kill_marked, self._mark)
            self._watch.dismiss()
            self._watch = None

    # What a server may ask of the session.

    async def ask(self, question: Question) -> QuestionAnswer | None:
        """The user's answer; None where nobody can be asked, or the policy keeps such questions from them."""
        front_end = self._front_end
        if (
            front_end is None
            or not self._settings.can_ask
            or not asks_about(front_end.settings().approval, "mcp_elicitations")
        ):
            return None
        return await front_end.ask(question)

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """What the model says to a server; the SDK asks only for those whose configuration allows it."""
        if self._front_end is None:
            return None
        return await self._settings.sample(request, self._front_end.settings())

    def roots(self) -> tuple[Path, ...]:
        """The directory the session works in."""
        return (self._settings.context.cwd if self._front_end is None else self._front_end.settings().cwd,)

    def warn(self, message: str) -> None:
        """Tell the user something, once."""
        if self._front_end is None:
            self._untold.append(message)
        else:
            self._front_end.warn(message)

    def _limits(self) -> CommandLimits:
        """What commands of the session may do now; servers of the project may do no more."""
        if self._front_end is None:
            return self._settings.context.limits()
        settings = self._front_end.settings().in_force()
        return CommandLimits(settings.sandbox_policy, settings.cwd)

    def _add_secrets(self, server: McpServer) -> None:
        if self._front_end is not None:
            context = self._settings.context
            tokens = login_secrets(server, context.tokens) if server.url else ()
            self._front_end.add_secrets((*server.secrets(context.env), *tokens))

    def _add_all_secrets(self) -> None:
        for state in self.connections.states:
            self._add_secrets(state.server)

    def _unmet(self) -> list[ServerState]:
        return [state for state in self.connections.states if state.catalog is None and state.failure is None]

    async def _start(self, delay: float) -> None:
        await asyncio.sleep(delay)
        if self._watch is None and any(state.server.url is None for state in self.connections.states):
            self._watch = set_watch(self._mark)
        self.connections.start()

    async def _sign_in(self, state: ServerState) -> McpFailed | None:
        from codex_py.core.mcp_login import browser_sign_in  # the seam: few servers want a login

        def show(url: str) -> None:
            self.warn(f"sign in at the MCP server `{state.server.name}`: {url}")

        state.signs_in = False
        try:
            async with browser_sign_in(self._settings.context.home, self._settings.login_port, show) as sign_in:
                await self.connections.link(state.server.name, sign_in=sign_in)
        except McpFailed as error:
            return error
        except asyncio.CancelledError:
            # Nobody is sent to the browser's answer any more.
            self.connections.give_up(state)
            raise
        return None


class _ObservedTokens:
    """The store of logins; `notify` is called after each read and write."""

    def __init__(self, tokens: TokenFile, notify: Callable[[], None]) -> None:
        self._tokens = tokens
        self._notify = notify

    def load(self) -> Mapping[str, Any]:
        self._notify()
        return self._tokens.load()

    def save(self, login: Mapping[str, Any]) -> None:
        self._tokens.save(login)
        self._notify()


def _named(states: Sequence[ServerState]) -> str:
    names = ", ".join(f"`{sanitize_line(state.server.name)}`" for state in states)
    return f"the MCP server{'s' if len(states) > 1 else ''} {names}"


def _text_of(message: Mapping[str, Any]) -> str:
    content = as_object(message.get("content"))
    text = content.get("text") or as_object(content.get("resource")).get("text")
    return text if isinstance(text, str) else ""

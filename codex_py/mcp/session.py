"""The MCP servers of one session: what they may ask of it, when they start, and what happens at its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.core.ports import NamedConnectors, SessionAccess
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import UserError
from codex_py.mcp.connections import McpConnections, ServerState
from codex_py.mcp.connectors import ConnectorRules, has_link, named_connectors, texts_of_user
from codex_py.mcp.consent import InstallRules, ServerConsent
from codex_py.mcp.host import CommandLimits, McpContext, McpFailed, McpLoginNeeded, TokenFile, login_secrets
from codex_py.mcp.login import browser_sign_in
from codex_py.mcp.prompts import prompt_commands, prompt_text, read_arguments
from codex_py.mcp.servers import McpServer
from codex_py.mcp.tools import McpTools
from codex_py.process.sweep import MARKER, Watchdog, kill_marked, set_watch
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import asks_about
from codex_py.protocol.questions import AskUser, Question, QuestionAnswer
from codex_py.protocol.status import PromptCommand
from codex_py.protocol.value import Value
from codex_py.skills.model import McpNeed, SkillCatalog
from codex_py.text.sanitize import sanitize_line

# How long the first request waits for servers whose tools nobody knows yet.
_MEET_SECONDS: Final = 10.0


class McpSettings(Value):
    """The settings for starting the servers of a session. `keep` stores the approval of a server's tool with this hash.

    `login_port` is where a browser comes back to, None for any. `sample` asks the model for a server.
    """

    context: McpContext
    servers: tuple[McpServer, ...]
    namespaces: bool
    pictures: bool
    can_ask: bool
    keep: Callable[[McpServer, str, str], None]
    sample: Callable[[Mapping[str, Any], TurnSettings], Awaitable[Mapping[str, Any]]]
    install: InstallRules
    login_port: int | None = None
    connectors: ConnectorRules = ConnectorRules({})


class SessionServers:
    """Implements `McpClients`."""

    def __init__(self, settings: McpSettings, access: SessionAccess) -> None:
        self._settings = settings
        self._access = access
        self._mark = f"mcp-{os.getpid()}-{os.urandom(8).hex()}"
        tokens = _ObservedTokens(settings.context.tokens, self._add_all_secrets)
        context = settings.context.replace(mark={MARKER: self._mark}, tokens=tokens, limits=self._limits)
        self._connections = McpConnections(settings.servers, context, _Host(settings, access))
        self._tools = McpTools(
            self._connections,
            namespaces=settings.namespaces,
            pictures=settings.pictures,
            keep=settings.keep,
            rules=settings.connectors,
        )
        self._consent = ServerConsent(settings.install, self._add)
        # The names of servers that were waited for.
        self._awaited: set[str] = set()
        # Whether the connectors that an earlier run of the session named have been looked up.
        self._has_recalled = False
        self._watch: Watchdog | None = None
        self._add_all_secrets()
        if self._unmet():
            # Its tools are waited for with the first message: it starts while that is typed.
            self.begin()

    @property
    def tools(self) -> McpTools | None:
        """The tools of the servers; None while there is no server, for then there are no resources either."""
        return self._tools if self._connections.states else None

    def join_tools(self) -> Sequence[str]:
        """Show the tools that servers have added since; lines for the user about them."""
        return self._tools.join()

    def name_connectors(
        self, texts: Sequence[str], earlier: Iterable[ResponseItem], skills: SkillCatalog
    ) -> NamedConnectors:
        """Show the tools of the connectors that texts name."""
        connectors = self._tools.connectors()
        texts = [text for text in texts if "$" in text]
        if not connectors and not any(map(has_link, texts)):
            return NamedConnectors()
        if not self._has_recalled:
            # What an earlier run named is shown again, in the same order.
            self._has_recalled = True
            self._tools.want(named_connectors(texts_of_user(earlier), connectors, skills).ids)
        mentioned = named_connectors(texts, connectors, skills)
        self._tools.want(mentioned.ids)
        return NamedConnectors(self.connector_slugs(), mentioned.notices)

    def connector_slugs(self) -> frozenset[str]:
        """The names behind a `$` that mean connectors."""
        return frozenset(connector.slug for connector in self._tools.connectors().values())

    def begin(self) -> None:
        """Start the servers; returns at once."""
        if self._watch is None and any(state.server.url is None for state in self._connections.states):
            self._watch = set_watch(self._mark)
        self._connections.start()

    async def require(self) -> None:
        """Wait for the servers a session does not begin without. Raises `UserError` for one that does not start."""
        required = [state for state in self._connections.states if state.server.required]
        if not required:
            return
        self.begin()
        await self._connections.settle(required)
        for state in required:
            if state.failure is not None:
                raise UserError(
                    str(state.failure), hint=f"it is `required`; `codex-py mcp test {state.server.name}` tells more"
                )
        self._tools.join()

    async def meet(self) -> bool:
        """Wait, once and for a limited time, for servers whose tools are unknown. Returns whether there were any."""
        unmet = [state for state in self._unmet() if state.server.name not in self._awaited]
        if not unmet:
            return False
        self._awaited.update(state.server.name for state in unmet)
        self.begin()
        waiting = await self._connections.settle(unmet, seconds=0)
        if waiting:
            self._access.warn(f"waiting for {_named(waiting)}, not used before: {_MEET_SECONDS:g} s at most")
        for state in await self._connections.settle(waiting, seconds=_MEET_SECONDS):
            name = sanitize_line(state.server.name)
            self._access.warn(
                f"{_named([state])} has not answered within {_MEET_SECONDS:g} s: the turn goes on without its tools"
                f" (`codex-py mcp test {name}` shows why)"
            )
        self._tools.join()
        return True

    async def ask_about_project(self, ask: AskUser, warn: Callable[[str], None]) -> bool:
        """Ask, once, about the project's servers the user has not decided on; whether any were started."""
        return await self._consent.ask_about_project(ask, warn)

    async def provide(self, needs: Sequence[McpNeed], *, ask: AskUser | None, warn: Callable[[str], None]) -> None:
        """Add the servers that skills need, if the user agrees."""
        await self._consent.provide(needs, ask=ask, warn=warn)

    def prompts(self) -> Sequence[PromptCommand]:
        """The prompts of all servers, sorted by name."""
        return prompt_commands(self._connections.states)

    async def fill_prompt(self, command: PromptCommand, typed: str) -> str:
        """The message to send for a prompt and the words typed after its name. Raises `UserError`."""
        arguments = read_arguments(command, typed)
        try:
            link = await self._connections.link(command.server)
            return prompt_text(await link.get_prompt(command.prompt, arguments))
        except McpFailed as error:
            raise UserError(f"cannot use the prompt `{command.prompt}` of `{command.server}`: {error}") from error

    def describe(self) -> Mapping[str, str]:
        """How each server is doing, in a few words, by its name."""
        return {state.server.name: state.describe() for state in self._connections.states}

    async def close(self) -> None:
        """End every connection, and whatever the servers have left running."""
        await self._connections.close()
        if self._watch is not None:
            await asyncio.to_thread(kill_marked, self._mark)
            self._watch.dismiss()
            self._watch = None

    def _limits(self) -> CommandLimits:
        """The limits of the session's commands now; servers of the project get the same."""
        settings = self._access.settings().in_force()
        return CommandLimits(settings.sandbox_policy, settings.cwd)

    def _add_secrets(self, server: McpServer) -> None:
        context = self._settings.context
        tokens = login_secrets(server, context.tokens) if server.url else ()
        self._access.add_secrets((*server.secrets(context.env), *tokens))

    def _add_all_secrets(self) -> None:
        for state in self._connections.states:
            self._add_secrets(state.server)

    def _unmet(self) -> list[ServerState]:
        return [state for state in self._connections.states if state.catalog is None and state.failure is None]

    async def _add(self, servers: Sequence[McpServer]) -> list[McpFailed]:
        """Start more servers and wait for them, signing in where one wants that; their tools can be shown then."""
        added = [self._connections.add(server) for server in servers]
        for state in added:
            state.signs_in = self._settings.can_ask
            self._add_secrets(state.server)
        self.begin()
        await self._connections.settle(added)
        failures: list[McpFailed] = []
        for state in added:
            failure = state.failure
            if isinstance(failure, McpLoginNeeded) and self._settings.can_ask:
                failure = await self._sign_in(state)
            failures += [failure] if failure is not None else []
        return failures

    async def _sign_in(self, state: ServerState) -> McpFailed | None:
        def show(url: str) -> None:
            self._access.warn(f"sign in at the MCP server `{state.server.name}`: {url}")

        state.signs_in = False
        try:
            async with browser_sign_in(self._settings.context.home, self._settings.login_port, show) as sign_in:
                await self._connections.link(state.server.name, sign_in=sign_in)
        except McpFailed as error:
            return error
        except asyncio.CancelledError:
            # Nobody is sent to the browser's answer any more.
            self._connections.give_up(state)
            raise
        return None


class _Host:
    """The requests that a server may make of the session."""

    def __init__(self, settings: McpSettings, access: SessionAccess) -> None:
        self._settings = settings
        self._access = access

    async def ask(self, question: Question) -> QuestionAnswer | None:
        """The user's answer; None where nobody can be asked, or the policy forbids such questions."""
        if not self._settings.can_ask or not asks_about(self._access.settings().approval, "mcp_elicitations"):
            return None
        return await self._access.ask(question)

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Let the model answer a server; the SDK forwards only requests of servers whose configuration allows it."""
        return await self._settings.sample(request, self._access.settings())

    def roots(self) -> tuple[Path, ...]:
        """The directory the session works in."""
        return (self._access.settings().cwd,)

    def warn(self, message: str) -> None:
        """Show the user a line, once."""
        self._access.warn(message)


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

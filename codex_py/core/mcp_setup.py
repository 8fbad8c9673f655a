"""The MCP servers of a session: none in most, set up at the start or when a skill needs the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from codex_py.core.configured_servers import ServerTable, WaitingServer
from codex_py.core.session_request import SessionRequest
from codex_py.core.turn_context import TurnSettings
from codex_py.model.client import ModelClient
from codex_py.model.providers import Provider
from codex_py.protocol.questions import AskUser
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from codex_py.core.session_mcp import SessionMcp
    from codex_py.tools.mcp_tools import McpTools


class InstallRules(Value):
    """Where servers that skills need are written down: `file`, the user's configuration, which has those `names`.

    With `always` nobody is asked; for the skills of `never` it is not done. `project` is the directory under which the
    file keeps what the user says to the servers of a project.
    """

    file: Path
    project: Path
    names: frozenset[str] = frozenset()
    always: bool = False
    never: frozenset[str] = frozenset()


class LazyMcp:
    """`rules` say how skills bring servers along. `make` builds what servers need, with `now` from the beginning.

    `waiting` are servers of the project that the user is to be asked about.
    """

    def __init__(
        self,
        make: Callable[[], SessionMcp],
        *,
        now: bool,
        rules: InstallRules,
        waiting: Sequence[WaitingServer] = (),
    ) -> None:
        self.rules: Final = rules
        self._waiting = tuple(waiting)
        # Whether what an earlier run was asked for has been looked up.
        self.recalled = False
        # The keys of servers the user was asked about, and the names that are taken.
        self.offered_keys: Final[set[str]] = set()
        self.names: Final[set[str]] = set(rules.names)
        self._make = make
        self._attach: Callable[[SessionMcp], None] | None = None
        self.servers: SessionMcp | None = make() if now else None

    @property
    def tools(self) -> McpTools | None:
        return None if self.servers is None else self.servers.tools

    def take_waiting(self) -> tuple[WaitingServer, ...]:
        """The servers of the project that the user has not been asked about in this session."""
        waiting, self._waiting = self._waiting, ()
        return waiting

    def attach(
        self,
        *,
        ask: AskUser,
        warn: Callable[[str], None],
        add_secrets: Callable[[Iterable[str]], None],
        settings: Callable[[], TurnSettings],
    ) -> None:
        """Let the servers reach the session, those there are and those that come."""

        def attach(servers: SessionMcp) -> None:
            from codex_py.core.session_mcp import McpFrontEnd  # loaded with the servers

            servers.attach(McpFrontEnd(ask=ask, warn=warn, add_secrets=add_secrets, settings=settings))

        self._attach = attach
        if self.servers is not None:
            attach(self.servers)

    def fill(self) -> SessionMcp:
        """The servers of the session, which has some from now on."""
        if self.servers is None:
            self.servers = self._make()
            if self._attach is not None:
                self._attach(self.servers)
        return self.servers

    def begin(self) -> None:
        """The first request is about to go out: start the servers in a moment."""
        if self.servers is not None:
            self.servers.begin()

    async def meet(self) -> bool:
        """The first request is about to be made: wait for servers never met. Whether there were any."""
        return self.servers is not None and await self.servers.meet()

    async def close(self) -> None:
        """End every server."""
        if self.servers is not None:
            await self.servers.close()


class ServerAnswers(Value):
    """Who answers what servers ask of the model, and whether that model takes `pictures`."""

    provider: Provider
    client: ModelClient
    pictures: bool


def session_servers(request: SessionRequest) -> ServerTable:
    """The servers that a session begins with, and those that wait for the user's word."""
    table = _configured_servers(request)
    if not request.more_servers:
        return table
    # One that a front end brings stands in place of a configured one of its name, and no word of the user's for that.
    added = request.more_servers
    return table.replace(
        entries={**table.entries, **added},
        keeps={name: key for name, key in table.keeps.items() if name not in added},
        trusted={name: server for name, server in table.trusted.items() if name not in added},
        waiting=tuple(server for server in table.waiting if server.name not in added),
    )


def _configured_servers(request: SessionRequest) -> ServerTable:
    loaded = request.loaded
    if loaded.project_mcp_servers or loaded.config.plugins:
        from codex_py.core.server_table import find_servers  # the seam: most have only servers of their own

        return find_servers(loaded, request.home, request.cwd)
    own = loaded.config.mcp_servers
    return ServerTable(entries=own, keeps={name: ("mcp_servers", name) for name in own})


def make_lazy_mcp(request: SessionRequest, table: ServerTable, answers: ServerAnswers) -> LazyMcp:
    """The MCP servers of the session, opened when there are any."""
    config = request.loaded.config
    rules = InstallRules(
        file=request.home / "config.toml",
        project=request.loaded.project_root or request.cwd,
        names=frozenset((*config.mcp_servers, *table.entries, *(server.name for server in table.waiting))),
        always=request.install_dependencies,
        never=frozenset(config.skills.never_install_mcp),
    )
    return LazyMcp(
        lambda: _make(request, table, answers),
        now=any(entry.get("enabled", True) is not False for entry in table.entries.values()),
        rules=rules,
        waiting=table.waiting if request.can_ask else (),
    )


def server_notices(request: SessionRequest, table: ServerTable) -> list[str]:
    """Lines for the user about servers that are not there."""
    notices = [sanitize_line(problem) for problem in table.problems]
    if table.waiting and not request.can_ask:
        shown = ", ".join(f"`{sanitize_line(server.name)}`" for server in table.waiting)
        what, verb = ("servers", "are") if len(table.waiting) > 1 else ("server", "is")
        notices.append(
            f"the project's MCP {what} {shown} {verb} not started: you have not agreed to what would run"
            " (`codex-py mcp trust NAME` shows it, and asks)"
        )
    return notices


def _make(request: SessionRequest, table: ServerTable, answers: ServerAnswers) -> SessionMcp:
    from codex_py.core.mcp_build import McpBuild, build_mcp  # the seam: only for who has such a server

    async def answer(request: Mapping[str, Any], settings: TurnSettings) -> Mapping[str, Any]:
        from codex_py.core.mcp_build import sample  # the seam: hardly any server may ask the model

        return await sample(answers.client, request, settings)

    return build_mcp(
        McpBuild(
            loaded=request.loaded,
            home=request.home,
            cwd=request.cwd,
            env=request.env,
            provider=answers.provider,
            pictures=answers.pictures,
            can_ask=request.can_ask,
            table=table,
            sample=answer,
        )
    )

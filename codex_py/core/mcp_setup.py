"""How a session comes by its MCP servers. What they need is imported when there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codex_py.core.lazy_mcp import InstallRules, LazyMcp, ServerTable
from codex_py.core.session_request import SessionRequest
from codex_py.core.turn_context import TurnSettings
from codex_py.model.client import ModelClient
from codex_py.model.providers import Provider
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from codex_py.core.session_mcp import SessionMcp


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
        from codex_py.core.mcp_sampling import sample  # the seam: hardly any server may ask the model

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

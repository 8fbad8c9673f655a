"""MCP servers that a project's own files name: put to the user, and started when they agree to exactly that.

Imported when there is one the user has said nothing about.
"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from codex_py.core.lazy_mcp import LazyMcp, WaitingServer
from codex_py.core.server_table import TrustWord, sandbox_of, trust_server
from codex_py.errors import UserError
from codex_py.mcp.servers import McpServer, read_server
from codex_py.protocol.ids import uuid7
from codex_py.protocol.questions import ProjectServer, ProjectServersQuestion, Question
from codex_py.text.credentials import is_secret
from codex_py.text.masked import MASK
from codex_py.text.sanitize import sanitize_line

_WORDS: Final[Mapping[str, tuple[TrustWord, ...]]] = MappingProxyType(
    {"yes": (), "network": ("network",), "outside": ("outside",), "never": ("no",)}
)


class ProjectServers(NamedTuple):
    """Asks about the servers that wait; `join` shows the tools of those that are started at once."""

    lazy_mcp: LazyMcp
    project: Path
    ask: Callable[[Question], Awaitable[str | None]]
    warn: Callable[[str], None]
    join: Callable[[], None]

    async def settle(self, waiting: Sequence[WaitingServer]) -> None:
        """One question about all of them; what the user says is written down, but for a no."""
        servers = [read_server(waiting_server.name, waiting_server.entry) for waiting_server in waiting]
        shown = tuple(
            describe_server(waiting_server, changed=two.changed)
            for waiting_server, two in zip(servers, waiting, strict=True)
        )
        answer = await self.ask(ProjectServersQuestion(uuid7(), self.project, shown))
        words = _WORDS.get(answer or "")
        if words is None:
            return
        for waiting_server in waiting:
            try:
                trust_server(
                    self.lazy_mcp.rules.file.parent, self.project, waiting_server.name, waiting_server.pin, words=words
                )
            except UserError as error:
                self.warn(
                    f"your answer about `{sanitize_line(waiting_server.name)}` holds for this session only: {error}"
                )
        if "no" not in words:
            agreed = [
                server.replace(
                    remembers=False, pin=waiting_server.pin, sandbox=sandbox_of(server, words), allow_with=""
                )
                for server, waiting_server in zip(servers, waiting, strict=True)
            ]
            for failure in await self.lazy_mcp.fill().add(agreed):
                self.warn(str(failure))
            self.join()


def describe_server(server: McpServer, *, changed: bool = False) -> ProjectServer:
    """A server as a person is shown it, before it is started for the first time."""
    passed = [*server.env_vars, server.bearer_token_env_var, server.oauth_client_secret_env_var]
    passed += [*server.env_http_headers.values()]
    return ProjectServer(
        name=sanitize_line(server.name),
        transport=server.transport,
        target=sanitize_line(server.url or shlex.join((server.command or "", *server.args))),
        cwd=server.cwd,
        passes=tuple(sanitize_line(name) for name in dict.fromkeys(filter(None, passed))),
        sets=tuple(
            sanitize_line(f"{name}={MASK if is_secret(name, value) else value}") for name, value in server.env.items()
        ),
        changed=changed,
    )

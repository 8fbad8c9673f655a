"""MCP servers the user has to agree to: those that a project's files name, and those that a skill needs.

Imported when there is one the user has said nothing about.

Imported when there is one.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from codex_py.config.edit import set_value
from codex_py.config.entries import put_mcp_server
from codex_py.core.configured_servers import WaitingServer
from codex_py.core.mcp_setup import LazyMcp
from codex_py.core.server_table import TrustWord, sandbox_of, trust_server
from codex_py.errors import UserError
from codex_py.mcp.servers import McpServer, read_server
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.questions import (
    AskUser,
    McpInstallQuestion,
    McpServerWanted,
    ProjectServer,
    ProjectServersQuestion,
    answer_text,
)
from codex_py.skills.dependencies import McpNeed, missing_mcp_warning
from codex_py.text.credentials import MASK, is_secret
from codex_py.text.sanitize import sanitize_line

_WORDS: Final[Mapping[str, tuple[TrustWord, ...]]] = MappingProxyType(
    {"yes": (), "network": ("network",), "outside": ("outside",), "never": ("no",)}
)


class ProjectServers(NamedTuple):
    """Asks about the servers that wait; `join` shows the tools of those that are started at once."""

    lazy_mcp: LazyMcp
    project: Path
    ask: AskUser
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
        words = _WORDS.get(answer_text(answer) or "")
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


_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")


class SkillServers:
    """Each server is asked about once a session. `ask` is None where nobody answers; `join` shows new tools at once."""

    def __init__(
        self,
        lazy_mcp: LazyMcp,
        *,
        ask: AskUser | None,
        warn: Callable[[str], None],
        join: Callable[[], None],
    ) -> None:
        self._lazy_mcp = lazy_mcp
        self._ask = ask
        self._warn = warn
        self._join = join
        self._offered_keys = lazy_mcp.offered_keys
        self._names = lazy_mcp.names

    async def provide(self, needs: Sequence[McpNeed]) -> None:
        """Before the first request of a turn: install what the user wants installed; the tools are there then."""
        rules = self._lazy_mcp.rules
        open_needs = {
            need.key: need for need in needs if need.key not in self._offered_keys and set(need.skills) - rules.never
        }
        self._offered_keys.update(open_needs)
        if not open_needs:
            return
        open_list = list(open_needs.values())
        if rules.always or await self._wants_install(open_list):
            await self._install(open_list)

    async def _wants_install(self, needs: Sequence[McpNeed]) -> bool:
        answer = None
        if self._ask is not None:
            shown = tuple(
                McpServerWanted(
                    sanitize_line(server_need.name),
                    server_need.transport,
                    sanitize_line(server_need.target),
                    server_need.skills,
                )
                for server_need in needs
            )
            answer = await self._ask(McpInstallQuestion(uuid7(), shown))
        if answer == "yes":
            return True
        if answer == "never":
            self._never([skill for need in needs for skill in need.skills])
        else:
            them = "it" if len(needs) == 1 else "them"
            hint = "" if self._ask else f"; `--install-dependencies` adds {them}"
            self._warn(f"{missing_mcp_warning(needs)}{hint}")
        return False

    def _never(self, skills: Sequence[str]) -> None:
        rules = self._lazy_mcp.rules
        try:
            set_value(rules.file, ("skills", "never_install_mcp"), sorted(rules.never | set(skills)))
        except UserError as error:
            self._warn(str(error))

    async def _install(self, needs: Sequence[McpNeed]) -> None:
        servers: list[McpServer] = []
        for need in needs:
            name, entry = self._free_name(need.name), entry_for(need)
            try:
                self._write(name, entry)
            except UserError as error:
                self._warn(f"the MCP server `{name}` holds for this session only: {error}")
            servers.append(read_server(name, entry))
        failures = await self._lazy_mcp.fill().add(servers)
        for failure in failures:
            self._warn(str(failure))
        self._join()

    def _write(self, name: str, entry: dict[str, Any]) -> None:
        put_mcp_server(self._lazy_mcp.rules.file, name, entry)

    def _free_name(self, base: str) -> str:
        """A name for a new entry: those that are there stay as they are."""
        plain = _ODD.sub("-", base).strip("-") or "server"
        name, number = plain, 2
        while name in self._names:
            name, number = f"{plain}-{number}", number + 1
        self._names.add(name)
        return name


def entry_for(need: McpNeed) -> dict[str, Any]:
    """The `[mcp_servers.NAME]` table of a server that a skill describes."""
    # The user asked for the skill, and knows nothing of the server: its word about its tools saves no question.
    claims = {"trust_annotations": False}
    if need.url is not None:
        return {"url": need.url} | claims
    try:
        words = shlex.split(need.command or "")
    except ValueError:
        words = [need.command or ""]
    return {"command": words[0], **({"args": words[1:]} if words[1:] else {})} | claims

"""MCP servers that need the user's agreement: those that a project's files name, and those that a skill needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.config.edit import set_value
from codex_py.config.entries import put_mcp_server
from codex_py.errors import UserError
from codex_py.mcp.host import McpFailed
from codex_py.mcp.servers import McpServer, read_server
from codex_py.mcp.table import ListedServer, TrustWord, sandbox_of, trust_server
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.questions import (
    AskUser,
    McpInstallQuestion,
    McpServerWanted,
    ProjectServer,
    ProjectServersQuestion,
    answer_text,
)
from codex_py.protocol.value import Value
from codex_py.skills.dependencies import missing_mcp_warning
from codex_py.skills.model import McpNeed
from codex_py.text.credentials import MASK, is_secret
from codex_py.text.sanitize import sanitize_line

# What each answer about a project's servers adds to a plain yes.
_WORDS: Final[dict[str, tuple[TrustWord, ...]]] = {
    "yes": (),
    "network": ("network",),
    "outside": ("outside",),
    "never": ("no",),
}
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")


class InstallRules(Value):
    """Where the user's decisions are stored: `file` is the user's configuration, which has servers of these `names`.

    `waiting` are the servers of `project` that the user has not decided on. With `always` a skill's servers are added
    without a question; those of the skills in `never` are not added, and with `never_ask` none.
    """

    file: Path
    project: Path
    waiting: tuple[ListedServer, ...] = ()
    names: frozenset[str] = frozenset()
    always: bool = False
    never_ask: bool = False
    never: frozenset[str] = frozenset()


class ServerConsent:
    """Asks about each server once a session. `add` starts the agreed ones and returns the failures."""

    def __init__(self, rules: InstallRules, add: Callable[[Sequence[McpServer]], Awaitable[list[McpFailed]]]) -> None:
        self._rules = rules
        self._add = add
        self._waiting = rules.waiting
        self._offered_keys: set[str] = set()
        self._names = set(rules.names)

    async def ask_about_project(self, ask: AskUser, warn: Callable[[str], None]) -> bool:
        """One question about all servers that wait; every answer but a plain no is stored. Whether any were started."""
        waiting, self._waiting = self._waiting, ()
        if not waiting:
            return False
        servers = [(read_server(entry.name, entry.entry), entry) for entry in waiting]
        shown = tuple(describe_server(server, changed=entry.standing == "changed") for server, entry in servers)
        words = _WORDS.get(answer_text(await ask(ProjectServersQuestion(uuid7(), self._rules.project, shown))) or "")
        if words is None:
            return False
        for server, entry in servers:
            try:
                trust_server(self._rules.file.parent, self._rules.project, server.name, entry.pin, words=words)
            except UserError as error:
                warn(f"your answer about `{sanitize_line(server.name)}` holds for this session only: {error}")
        if "no" in words:
            return False
        agreed = [server.replace(pin=entry.pin, sandbox=sandbox_of(server, words), key=()) for server, entry in servers]
        await self._start(agreed, warn)
        return True

    async def provide(self, needs: Sequence[McpNeed], *, ask: AskUser | None, warn: Callable[[str], None]) -> None:
        """Before the first request of a turn: add the servers the user agrees to; their tools are there then."""
        rules = self._rules
        missing = {
            need.key: need for need in needs if need.key not in self._offered_keys and set(need.skills) - rules.never
        }
        self._offered_keys.update(missing)
        if missing and rules.never_ask and not rules.always:
            ask = None
        if missing and (rules.always or await self._wants(tuple(missing.values()), ask, warn)):
            await self._start([self._install(need, warn) for need in missing.values()], warn)

    async def _wants(self, needs: Sequence[McpNeed], ask: AskUser | None, warn: Callable[[str], None]) -> bool:
        answer = None
        if ask is not None:
            shown = tuple(
                McpServerWanted(sanitize_line(need.name), need.transport, sanitize_line(need.target), need.skills)
                for need in needs
            )
            answer = answer_text(await ask(McpInstallQuestion(uuid7(), shown)))
        if answer == "never":
            skills = {skill for need in needs for skill in need.skills}
            try:
                set_value(self._rules.file, ("skills", "never_install_mcp"), sorted(self._rules.never | skills))
            except UserError as error:
                warn(str(error))
        elif answer != "yes":
            them = "it" if len(needs) == 1 else "them"
            hint = "" if ask else f"; `--install-dependencies` adds {them}"
            warn(f"{missing_mcp_warning(needs)}{hint}")
        return answer == "yes"

    def _install(self, need: McpNeed, warn: Callable[[str], None]) -> McpServer:
        name, entry = self._free_name(need.name), entry_for(need)
        try:
            put_mcp_server(self._rules.file, name, entry, skills=need.files)
        except UserError as error:
            warn(f"the MCP server `{name}` holds for this session only: {error}")
        return read_server(name, entry)

    async def _start(self, servers: Sequence[McpServer], warn: Callable[[str], None]) -> None:
        for failure in await self._add(servers):
            warn(str(failure))

    def _free_name(self, base: str) -> str:
        """A name for a new entry: existing ones stay as they are."""
        plain = _ODD.sub("-", base).strip("-") or "server"
        name, number = plain, 2
        while name in self._names:
            name, number = f"{plain}-{number}", number + 1
        self._names.add(name)
        return name


def describe_server(server: McpServer, *, changed: bool = False) -> ProjectServer:
    """A server as a person is shown it, before it is started for the first time."""
    passed = [*server.env_vars, server.bearer_token_env_var, server.oauth_client_secret_env_var]
    passed += [*server.env_http_headers.values()]
    return ProjectServer(
        name=sanitize_line(server.name),
        transport=server.transport,
        target=sanitize_line(server.url or shlex.join(server.argv)),
        cwd=server.cwd,
        passes=tuple(sanitize_line(name) for name in dict.fromkeys(filter(None, passed))),
        sets=tuple(
            sanitize_line(f"{name}={MASK if is_secret(name, value) else value}") for name, value in server.env.items()
        ),
        changed=changed,
    )


def entry_for(need: McpNeed) -> dict[str, Any]:
    """The `[mcp_servers.NAME]` table of a server that a skill describes."""
    # The user asked for the skill and does not know the server: its annotations save no question.
    claims = {"trust_annotations": False}
    if need.url is not None:
        return {"url": need.url} | claims
    try:
        words = shlex.split(need.command or "")
    except ValueError:
        words = [need.command or ""]
    return {"command": words[0], **({"args": words[1:]} if words[1:] else {})} | claims

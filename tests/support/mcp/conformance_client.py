"""Our client as the conformance scenarios want it: connects to the address it is given and calls every tool there is.

A browser is played by following the addresses it would be sent to. Questions are answered with their defaults.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpContext
from codex_py.mcp.login import browser_sign_in
from codex_py.mcp.servers import McpServer
from codex_py.protocol.questions import ChoiceQuestion, Question

ARGUMENTS = {"a": 5, "b": 3}
# Where the scenario about client documents says that ours is.
DOCUMENT = "https://conformance-test.local/client-metadata.json"


class Host:
    """Takes every default, and keeps what it hears."""

    def __init__(self, directory: Path) -> None:
        self.heard: list[str] = []
        self._directory = directory

    async def ask(self, question: Question) -> str | None:
        assert isinstance(question, ChoiceQuestion)
        return question.options[-2].label

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None

    def roots(self) -> tuple[Path, ...]:
        return (self._directory,)

    def warn(self, message: str) -> None:
        self.heard.append(message)

    def note(self, one: object) -> None:
        """Keep progress, and what a call gave."""
        self.heard.append(str(one))


class Tokens:
    """A store in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def load(self) -> Mapping[str, Any]:
        return self.kept

    def save(self, login: Mapping[str, Any]) -> None:
        self.kept = dict(login)


async def browse(url: str) -> None:
    async with httpx.AsyncClient(follow_redirects=True, verify=False) as client:
        await client.get(url)


async def call_everything(url: str, result: Mapping[str, str], home: Path) -> list[str]:
    """Sign in where that is asked for, call every tool, and give what was heard; raise `McpFailed` when refused.

    `told` are the variables in which a scenario tells its client more.
    """
    browsing: list[asyncio.Task[None]] = []
    value = json.loads(result.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    env = {"HOME": str(home), "CLIENT_SECRET": str(value.get("client_secret", ""))}
    host = Host(home)
    place = McpContext(home=home, cwd=home, env=env, version="1", tokens=Tokens(), mark={})
    is_cimd = result.get("MCP_CONFORMANCE_SCENARIO") == "auth/basic-cimd"
    # With the registration that the scenario has made for its client.
    server = McpServer(
        "conformance",
        url=url,
        oauth_client_id=DOCUMENT if is_cimd else value.get("client_id"),
        oauth_client_secret_env_var="CLIENT_SECRET" if env["CLIENT_SECRET"] else None,
    )
    connections = McpConnections([server], place, host)

    def show(address: str) -> None:
        browsing.append(asyncio.ensure_future(browse(address)))

    try:
        async with browser_sign_in(place.home, None, show) as sign_in:
            link = await connections.link("conformance", sign_in=sign_in)
            [state] = connections.states
            for tool in state.live.tools if state.live else ():
                arguments = ARGUMENTS if "add" in tool.name else {}
                host.note(await link.call_tool(tool.name, arguments, host.note))
    finally:
        await connections.close()
        await asyncio.gather(*browsing, return_exceptions=True)
    return host.heard

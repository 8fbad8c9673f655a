"""Our client as the conformance scenarios start it: connects to the address it is given and calls every tool there is.

A browser is played by following the addresses it would be sent to. Questions are answered with their defaults.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from codex_py.core.mcp_login import browser_sign_in
from codex_py.mcp.connections import McpConnections
from codex_py.mcp.host import McpFailed, McpPlace
from codex_py.mcp.servers import McpServer
from codex_py.protocol.questions import ChoiceQuestion, Question

ARGUMENTS = {"a": 5, "b": 3}


class Host:
    """Takes every default, and says what it hears."""

    async def ask(self, question: Question) -> str | None:
        assert isinstance(question, ChoiceQuestion)
        return question.options[-2].label

    async def sample(self, server: str, request: Mapping[str, Any]) -> Mapping[str, Any] | None:
        return None

    def roots(self) -> tuple[Path, ...]:
        return (Path.cwd(),)

    def warn(self, message: str) -> None:
        print(message, file=sys.stderr)


class Tokens:
    """A store in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def load(self) -> Mapping[str, Any]:
        return self.kept

    def save(self, login: Mapping[str, Any]) -> None:
        self.kept = dict(login)


async def browse(url: str) -> None:
    async with httpx.AsyncClient(follow_redirects=True) as client:
        await client.get(url)


async def run(url: str) -> None:
    browsing: list[asyncio.Task[None]] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        place = McpPlace(home=home, cwd=home, env=os.environ, version="1", tokens=Tokens(), mark={})
        connections = McpConnections([McpServer("conformance", url=url)], place, Host())

        def show(address: str) -> None:
            browsing.append(asyncio.ensure_future(browse(address)))

        try:
            async with browser_sign_in(None, show) as sign_in:
                link = await connections.link("conformance", sign_in=sign_in)
                [state] = connections.states
                for tool in state.live.tools if state.live else ():
                    print(await link.call_tool(tool.name, ARGUMENTS if "add" in tool.name else {}, print))
        finally:
            await connections.close()
            await asyncio.gather(*browsing, return_exceptions=True)


if __name__ == "__main__":
    try:
        asyncio.run(run(sys.argv[-1]))
    except McpFailed as failure:
        sys.exit(str(failure))

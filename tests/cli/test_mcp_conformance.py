"""The official client scenarios of the Model Context Protocol, against the client our sessions use."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from codex_py.mcp.host import McpFailed
from tests.support.home import BIN
from tests.support.mcp.conformance_client import call_everything
from tests.support.mcp_servers import KEPT_CODE, script

DOOR = Path(__file__).parents[1] / "support/mcp/conformance_door.py"
SCENARIOS = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
    "auth/offline-access-not-supported",
]


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_scenario_passes(scenario: str, tmp_path: Path) -> None:
    heard: list[str] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, told = json.loads(await reader.readline())
        try:
            heard.extend(await call_everything(address, told, tmp_path))
        except McpFailed as failure:
            writer.write(str(failure).encode())
        writer.close()

    async with await asyncio.start_server(connect, "127.0.0.1", 0) as door:
        port = door.sockets[0].getsockname()[1]
        ended = await play(scenario, f"{sys.executable} -I -S {DOOR} {port}", tmp_path)
    assert "OVERALL: PASSED" in ended, f"{ended[-3000:]}\n{heard}"


async def play(scenario: str, client: str, folder: Path) -> str:
    """Play a scenario against a program; what it prints."""
    # The package wants a newer Node than some machines have; that of the dev extra is new enough.
    command = [str(BIN / "node"), script("conformance"), "client", "--scenario", scenario, "-o", str(folder)]
    process = await asyncio.create_subprocess_exec(
        *command,
        *("--timeout", "120000", "--command", client),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **KEPT_CODE},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    return printed.decode()

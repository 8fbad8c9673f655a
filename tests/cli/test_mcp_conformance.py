"""The official client scenarios of the Model Context Protocol, against the client our sessions use."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_py.mcp.host import McpFailed
from tests.support.home import BIN
from tests.support.mcp.conformance_client import call_everything
from tests.support.mcp_servers import KEPT_CODE, script

RELAY = Path(__file__).parents[1] / "support/mcp/conformance_relay.py"
ALONE = ["initialize", "tools_call", "elicitation-sep1034-client-defaults"]
# Played at the same time, by one start of a program that is long in starting. The suite `extensions` is left out: in
# its three scenarios machines sign in without any user, with keys that were issued to them beforehand. This program
# signs in its user; a key of a machine's own is a bearer token or a header.
SUITES = {
    "auth": [
        "auth/basic-cimd",
        "auth/metadata-default",
        "auth/metadata-var1",
        "auth/metadata-var2",
        "auth/metadata-var3",
        "auth/pre-registration",
        "auth/scope-from-scopes-supported",
        "auth/scope-from-www-authenticate",
        "auth/scope-omitted-when-undefined",
        "auth/scope-retry-limit",
        "auth/scope-step-up",
        "auth/token-endpoint-auth-basic",
        "auth/token-endpoint-auth-none",
        "auth/token-endpoint-auth-post",
    ],
    "backcompat": ["auth/2025-03-26-oauth-endpoint-fallback", "auth/2025-03-26-oauth-metadata-backcompat"],
    "draft": ["auth/offline-access-not-supported", "auth/offline-access-scope", "auth/resource-mismatch"],
}


@pytest.mark.parametrize("scenario", ALONE)
async def test_a_scenario_passes(scenario: str, tmp_path: Path) -> None:
    printed = await play("--scenario", scenario, tmp_path)
    assert "OVERALL: PASSED" in printed, printed


async def test_a_stream_is_resumed_no_sooner_than_the_server_wants(tmp_path: Path) -> None:
    printed = await play("--scenario", "sse-retry", tmp_path)
    checks = {check["id"]: check for check in checks_in(tmp_path)}
    # Too late, for the scenario, is what a busy machine may be too.
    early = {name: check["details"].get("tooEarly") for name, check in checks.items() if name.startswith("client-sse")}
    assert early == {
        "client-sse-graceful-reconnect": None,
        "client-sse-retry-timing": False,
        "client-sse-last-event-id": None,
    }, printed
    assert checks["client-sse-graceful-reconnect"]["status"] == "SUCCESS", printed
    assert checks["client-sse-last-event-id"]["status"] == "SUCCESS", printed


@pytest.mark.parametrize("suite", SUITES)
async def test_every_scenario_of_a_suite_passes(suite: str, tmp_path: Path) -> None:
    printed = await play("--suite", suite, tmp_path)
    assert sorted(re.findall(r"(?m)^✓ (\S+): \d+ passed, 0 failed$", printed)) == SUITES[suite], printed


def checks_in(directory: Path) -> list[dict[str, Any]]:
    """What a scenario has looked at, as it wrote it down."""
    (result,) = directory.rglob("checks.json")
    return json.loads(result.read_bytes())


async def play(kind: str, name: str, directory: Path) -> str:
    """Play a scenario or a suite of them against our client; the end of what is printed, and what the client heard."""
    heard: list[str] = []

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address, result = json.loads(await reader.readline())
        try:
            heard.extend(await call_everything(address, result, directory))
        except McpFailed as failure:
            writer.write(str(failure).encode())
        writer.close()

    async with await asyncio.start_server(connect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        # The package wants a newer Node than some machines have; that of the dev extra is new enough.
        process = await asyncio.create_subprocess_exec(
            *(str(BIN / "node"), script("conformance"), "client", kind, name, "-o", str(directory)),
            *("--timeout", "120000", "--command", f"{sys.executable} -I -S {RELAY} {port}"),
            cwd=directory,
            env={"PATH": "/usr/bin:/bin", "HOME": str(directory), **KEPT_CODE},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        printed, _ = await process.communicate()
    return f"{printed.decode()[-6000:]}\n{heard}"

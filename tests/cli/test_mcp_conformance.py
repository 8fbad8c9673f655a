"""The official client scenarios of the Model Context Protocol, against the client our sessions use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.home import BIN
from tests.support.mcp_servers import script

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "tests/support/mcp/conformance_client.py"
SCENARIOS = [
    "initialize",
    "tools_call",
    "elicitation-sep1034-client-defaults",
    "sse-retry",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/2025-03-26-oauth-endpoint-fallback",
    "auth/resource-mismatch",
    "auth/offline-access-scope",
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_passes(scenario: str, tmp_path: Path) -> None:
    # The package wants a newer Node than some machines have; that of the dev extra is new enough.
    command = [str(BIN / "node"), script("conformance"), "client", "--scenario", scenario, "-o", str(tmp_path)]
    ended = subprocess.run(
        [*command, "--timeout", "120000", "--command", f"{sys.executable} {CLIENT}"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert "OVERALL: PASSED" in ended.stdout + ended.stderr, ended.stdout[-3000:] + ended.stderr[-3000:]

"""Codex CLI itself, for the tests that hand sessions over to it and take them back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.fake_responses import FakeResponses
from tests.support.home import Place

_OWN: Final = Path(__file__).parent / "reference/node_modules/.bin/codex"


def find_reference() -> str | None:
    """The program named by CODEX_REFERENCE, or the one `scripts/setup_node` has installed; None without one."""
    named = os.environ.get("CODEX_REFERENCE")
    return shutil.which(named or str(_OWN))


def run_reference(program: str, place: Place, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it in the place's repository, to its end."""
    node = shutil.which("node")
    path = f"{place.env['PATH']}:{Path(node).parent}" if node else place.env["PATH"]
    return subprocess.run(
        [program, *arguments],
        env={**place.env, "PATH": path},
        cwd=place.repo,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def configure_both(place: Place, model: FakeResponses) -> None:
    """A config.toml that either program reads without a word."""
    place.configure(
        'model = "gpt-5.5"\nmodel_provider = "fake"\nsandbox_mode = "danger-full-access"\n\n[model_providers.fake]\n'
        f'name = "fake"\nbase_url = "{model.base_url}"\nwire_api = "responses"\n'
    )

"""`codex-py resume` and `codex-py fork`: the terminal session, opened on an earlier one."""

from __future__ import annotations

from collections.abc import Sequence

from codex_py.cli.repl import run as run_terminal
from codex_py.core.resume import find_stored


def run(arguments: Sequence[str]) -> int:
    """Run one command line; give back the exit status. Raises `UserError` for a session that does not exist."""
    return run_terminal(arguments, find_stored)

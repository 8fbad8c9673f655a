"""`codex-py diff --turn N`: what a turn has changed in the files."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from codex_py.checkpoints.store import require_store
from codex_py.checkpoints.turn_diff import turn_diff
from codex_py.cli.typer_command import run_command
from codex_py.paths import codex_home
from codex_py.rollout.files import thread_of
from codex_py.rollout.find import find_exactly
from codex_py.rollout.listing import latest_session
from codex_py.rollout.transcript import check_turn, read_turns
from codex_py.text.sanitize import sanitize


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py diff …`; give back the exit status."""
    return run_command(diff, arguments, name="diff")


def diff(
    turn: Annotated[int, typer.Option("--turn", min=1, metavar="N", help="The number of the turn.")],
    target: Annotated[
        str,
        typer.Option("--session", metavar="SESSION", help="A session's id or name; the last one of this directory."),
    ] = "",
) -> int:
    """Print what a turn has changed in the files of the workspace, by whatever means."""
    home = codex_home(os.environ)
    path = find_exactly(home, target) if target else latest_session(home, Path.cwd())
    turns = read_turns(path)
    check_turn(path, turns, turn)
    session = require_store(home, thread_of(path))
    for text in turn_diff(session, turns[turn - 1].id, env=os.environ, cwd=Path.cwd()):
        sys.stdout.write(sanitize(text))
    return 0

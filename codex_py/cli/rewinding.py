"""Rewinding a stored session for a front end, and noting in the ledger of skills which of its turns were undone."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from codex_py.checkpoints.stored import RewindChoice, RewindOutcome, rewind_stored
from codex_py.cli.console import load_local_config
from codex_py.errors import UserError
from codex_py.rollout.listing import find_exactly
from codex_py.rollout.transcript import read_turns
from codex_py.skills.usage import read_entries, record_outcome


def rewind_and_note(home: Path, name: str, choice: RewindChoice, *, warn: Callable[[str], None]) -> RewindOutcome:
    """`rewind_stored`; the turns it takes back are undone, as far as skills were used in them. Raises `UserError`."""
    # Before the rewind, which takes them out of the session.
    turns = {} if choice.dry_run else _turns_from(home, name, choice.to)
    outcome = rewind_stored(home, name, choice, env=os.environ, warn=warn)
    for turn, session in turns.items() if turns and _keeps_ledger(outcome.cwd) else ():
        record_outcome(home, session, turn, "undone")
    return outcome


def _turns_from(home: Path, name: str, to: str) -> dict[str, str]:
    """The turns from a number on that the ledger knows, each with its session."""
    if not to.isascii() or not to.isdigit():
        return {}
    ids = {turn.id for turn in read_turns(find_exactly(home, name)) if turn.number >= int(to)}
    known = ((entry.get("turn"), entry.get("session")) for entry in read_entries(home))
    return {turn: session for turn, session in known if isinstance(session, str) and turn in ids}


def _keeps_ledger(cwd: Path) -> bool:
    with suppress(UserError):
        return load_local_config(cwd=cwd, quiet=True).loaded.config.skills.ledger
    return False

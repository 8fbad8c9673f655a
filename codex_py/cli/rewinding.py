"""Rewinding a stored session for a front end, and noting in the ledger of skills which of its turns were undone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.checkpoints.stored import RewindOutcome, list_turns, rewind_stored
from codex_py.cli.console import load_local_config
from codex_py.errors import UserError
from codex_py.rollout.listing import find_exactly
from codex_py.rollout.transcript import RewindChoice, read_turns
from codex_py.skills.usage import read_entries, record_outcome
from codex_py.text.display import describe_changes
from codex_py.ui.repl.launch import RewindPreview, RewindTurn, Rewound

_MAX_LINES: Final = 40


def rewind_and_note(home: Path, name: str, choice: RewindChoice, *, warn: Callable[[str], None]) -> RewindOutcome:
    """`rewind_stored`; the turns it takes back are undone, as far as skills were used in them. Raises `UserError`."""
    # Before the rewind, which takes them out of the session.
    turns = {} if choice.dry_run else _turns_from(home, name, choice.to)
    outcome = rewind_stored(home, name, choice, env=os.environ, warn=warn)
    for turn, session in turns.items() if turns and _keeps_ledger(outcome.cwd) else ():
        record_outcome(home, session, turn, "undone")
    return outcome


class StoredRewinds:
    """The `ui.repl.launch.RewindHost` for stored sessions."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def turns(self, thread_id: str) -> list[RewindTurn]:
        return [
            RewindTurn(
                turn.number,
                turn.timestamp[:16].replace("T", " "),
                turn.message,
                describe_changes(turn.changed.changed, turn.changed.deleted) if turn.changed else "",
            )
            for turn in list_turns(self._home, thread_id)
        ]

    def preview(self, thread_id: str, request: RewindChoice) -> RewindPreview:
        outcome = rewind_and_note(self._home, thread_id, request._replace(dry_run=True), warn=lambda _: None)
        conflicts = len(outcome.files.plan.paths("conflict"))
        return RewindPreview((*_cut(outcome.lines()), *outcome.notices()), outcome.diffs, conflicts)

    def rewind(self, thread_id: str, request: RewindChoice) -> Rewound:
        notes: list[str] = []
        outcome = rewind_and_note(self._home, thread_id, request, warn=notes.append)
        message = outcome.conversation.message if outcome.conversation else ""
        return Rewound((*_cut(outcome.lines()), *outcome.notices(), *notes), message)


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


def _cut(lines: Sequence[str]) -> list[str]:
    """What fits a screen: the conversation, in the last line, and of the files the first ones."""
    more = len(lines) - _MAX_LINES
    return list(lines) if more <= 0 else [*lines[: _MAX_LINES - 1], f"and {more:,} files more", lines[-1]]

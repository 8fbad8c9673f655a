"""What `/undo` and `/rewind` of the terminal session go back with: the stored session and its checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.checkpoints.stored import RewindChoice, RewindOutcome, list_turns
from codex_py.cli.rewinding import rewind_and_note
from codex_py.text.display import describe_changes
from codex_py.ui.repl.launch import RewindPreview, RewindRequest, RewindTurn, Rewound

_MAX_LINES: Final = 40


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

    def preview(self, thread_id: str, request: RewindRequest) -> RewindPreview:
        outcome = self._run(thread_id, request, [], is_dry=True)
        conflicts = len(outcome.files.plan.paths("conflict"))
        return RewindPreview((*_cut(outcome.lines()), *outcome.notices()), outcome.diffs, conflicts)

    def rewind(self, thread_id: str, request: RewindRequest) -> Rewound:
        notes: list[str] = []
        outcome = self._run(thread_id, request, notes, is_dry=False)
        message = outcome.conversation.message if outcome.conversation else ""
        return Rewound((*_cut(outcome.lines()), *outcome.notices(), *notes), message)

    def _run(self, thread_id: str, request: RewindRequest, notes: list[str], *, is_dry: bool) -> RewindOutcome:
        choice = RewindChoice(
            request.to,
            files=request.files,
            conversation=request.conversation,
            copies_conflicts=request.copies_conflicts,
            dry_run=is_dry,
        )
        return rewind_and_note(self._home, thread_id, choice, warn=notes.append)


def _cut(lines: Sequence[str]) -> list[str]:
    """What fits a screen: the conversation, in the last line, and of the files the first ones."""
    more = len(lines) - _MAX_LINES
    return list(lines) if more <= 0 else [*lines[: _MAX_LINES - 1], f"and {more:,} files more", lines[-1]]

"""The turns of a stored session: where each begins and ends, so that a fork can leave after any of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UsageError
from codex_py.rollout.records import RolloutRecord, read_records, user_text

_RECORD_TYPES: Final = frozenset({b"event_msg", b"session_meta"})


class StoredTurn(NamedTuple):
    """A turn in which the user said something; `number` counts from 1.

    Its records have ordinals from `begins` up to `ends`, which is None for the last turn of the file.
    """

    number: int
    prompt: str
    timestamp: str
    begins: int
    ends: int | None


class TurnCounter:
    """Tells which turn a record belongs to; feed it the records in order."""

    def __init__(self) -> None:
        self.turns: list[StoredTurn] = []
        self._begins: int | None = None

    def feed(self, record: RolloutRecord) -> None:
        if record.record_type == "event_msg" and record.payload.get("type") == "task_started":
            self._end_last(record.ordinal)
            self._begins = record.ordinal
        elif (prompt := user_text(record)) is not None:
            self._begin(record, prompt)

    def _begin(self, record: RolloutRecord, prompt: str) -> None:
        # Said while the turn runs: it belongs to that turn.
        if self._begins is None and self.turns and self.turns[-1].ends is None:
            return
        begins = record.ordinal if self._begins is None else self._begins
        self._begins = None
        self.turns.append(StoredTurn(len(self.turns) + 1, prompt, record.timestamp, begins, None))

    def _end_last(self, ordinal: int) -> None:
        if self.turns and self.turns[-1].ends is None:
            self.turns[-1] = self.turns[-1]._replace(ends=ordinal)


def read_turns(path: Path) -> tuple[StoredTurn, ...]:
    """The turns of a session, those a fork took over included. Raise `UserError` for a file that cannot be read."""
    counter = TurnCounter()
    for record in read_records(path, record_types=_RECORD_TYPES):
        counter.feed(record)
    return tuple(counter.turns)


def end_of_turn(path: Path, number: int) -> int | None:
    """The ordinal a session's records are below up to the end of a turn; None when that is its last.

    Raise `UsageError` when there is no such turn.
    """
    turns = read_turns(path)
    if not 1 <= number <= len(turns):
        held = f"has {len(turns)} turn{'' if len(turns) == 1 else 's'}"
        raise UsageError(
            f"no turn {number} in session `{path.stem[-36:]}`, which {held}",
            hint=f"`codex-py sessions show {path.stem[-36:]}` numbers them",
        )
    return turns[number - 1].ends

"""What was said and done in a stored session, in order: for people who want to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import ResponseItem
from codex_py.rollout.records import RolloutRecord, read_records
from codex_py.rollout.turns import TurnCounter


class TranscriptItem(NamedTuple):
    """An item of the history. `turn` is that of `turns.read_turns`, 0 for what stands before the first."""

    turn: int
    timestamp: str
    item: ResponseItem


class TranscriptCompaction(NamedTuple):
    """Here `items`, a summary among them, took the place of `replaced` items; old files have only a `message`."""

    turn: int
    timestamp: str
    message: str
    replaced: int
    items: tuple[ResponseItem, ...]


class TranscriptFailure(NamedTuple):
    """A turn failed."""

    turn: int
    timestamp: str
    message: str


TranscriptEntry: TypeAlias = TranscriptItem | TranscriptCompaction | TranscriptFailure


def read_transcript(path: Path) -> list[TranscriptEntry]:
    """Everything a session's records tell, also what compactions have replaced.

    Raise `UserError` for a file that cannot be read.
    """
    reader = _TranscriptReader()
    for record in read_records(path):
        reader.feed(record)
    return reader.entries


def before_compaction(transcript: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """What came before the last compaction, raw; nothing when there was none."""
    return transcript[: _last_compaction(transcript)]


def live(transcript: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """The last compaction and what came after it; everything when there was none."""
    return transcript[_last_compaction(transcript) :]


def _last_compaction(transcript: list[TranscriptEntry]) -> int:
    return max((index for index, entry in enumerate(transcript) if isinstance(entry, TranscriptCompaction)), default=0)


class _TranscriptReader:
    def __init__(self) -> None:
        self.entries: list[TranscriptEntry] = []
        self._counter = TurnCounter()
        self._unnumbered = 0
        self._length = 0

    def feed(self, record: RolloutRecord) -> None:
        before = len(self._counter.turns)
        self._counter.feed(record)
        if len(self._counter.turns) > before:
            self._number_the_prompt()
        entry = self._read(record)
        if entry is not None:
            self.entries.append(entry)

    def _number_the_prompt(self) -> None:
        """The items of a turn come before the event that tells what the user said in it."""
        begun = self._counter.turns[-1]
        for index in range(self._unnumbered, len(self.entries)):
            self.entries[index] = self.entries[index]._replace(turn=begun.number)
        self._unnumbered = len(self.entries)

    def _read(self, record: RolloutRecord) -> TranscriptEntry | None:
        payload = record.payload
        match record.record_type:
            case "response_item" if isinstance(payload.get("type"), str):
                self._length += 1
                return TranscriptItem(self._turn, record.timestamp, ResponseItem.from_wire(payload))
            case "compacted":
                return self._compaction(record, payload)
            case "event_msg" if payload.get("type") == "task_started":
                self._unnumbered = len(self.entries)
            case "event_msg" if payload.get("type") == "error":
                return TranscriptFailure(self._turn, record.timestamp, str(payload.get("message", "")))
            case _:
                pass
        return None

    def _compaction(self, record: RolloutRecord, payload: dict[str, Any]) -> TranscriptCompaction:
        values = [as_object(value) for value in as_list(payload.get("replacement_history"))]
        items = tuple(ResponseItem.from_wire(value) for value in values if isinstance(value.get("type"), str))
        replaced, self._length = self._length, len(items)
        return TranscriptCompaction(self._turn, record.timestamp, str(payload.get("message", "")), replaced, items)

    @property
    def _turn(self) -> int:
        return len(self._counter.turns)

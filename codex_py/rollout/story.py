"""What was said and done in a stored session, in order: for people who want to read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import ResponseItem
from codex_py.rollout.records import Record, read_records
from codex_py.rollout.turns import TurnCounter


class ToldItem(NamedTuple):
    """An item of the history. `turn` is that of `turns.read_turns`, 0 for what stands before the first."""

    turn: int
    timestamp: str
    item: ResponseItem


class ToldCompaction(NamedTuple):
    """Here `items`, a summary among them, took the place of `replaced` items; old files have only a `message`."""

    turn: int
    timestamp: str
    message: str
    replaced: int
    items: tuple[ResponseItem, ...]


class ToldFailure(NamedTuple):
    """A turn failed."""

    turn: int
    timestamp: str
    message: str


Told: TypeAlias = ToldItem | ToldCompaction | ToldFailure


def read_story(path: Path) -> list[Told]:
    """Everything a session's records tell, also what compactions have replaced.

    Raise `UserError` for a file that cannot be read.
    """
    teller = _Teller()
    for record in read_records(path):
        teller.feed(record)
    return teller.told


def before_compaction(story: list[Told]) -> list[Told]:
    """What came before the last compaction, raw; nothing when there was none."""
    return story[: _last_compaction(story)]


def live(story: list[Told]) -> list[Told]:
    """The last compaction and what came after it; everything when there was none."""
    return story[_last_compaction(story) :]


def _last_compaction(story: list[Told]) -> int:
    return max((place for place, told in enumerate(story) if isinstance(told, ToldCompaction)), default=0)


class _Teller:
    def __init__(self) -> None:
        self.told: list[Told] = []
        self._counter = TurnCounter()
        self._untold = 0
        self._length = 0

    def feed(self, record: Record) -> None:
        before = len(self._counter.turns)
        self._counter.feed(record)
        if len(self._counter.turns) > before:
            self._number_the_prompt()
        told = self._read(record)
        if told is not None:
            self.told.append(told)

    def _number_the_prompt(self) -> None:
        """The items of a turn come before the event that tells what the user said in it."""
        begun = self._counter.turns[-1]
        for place in range(self._untold, len(self.told)):
            self.told[place] = self.told[place]._replace(turn=begun.number)
        self._untold = len(self.told)

    def _read(self, record: Record) -> Told | None:
        payload = record.payload
        match record.kind:
            case "response_item" if isinstance(payload.get("type"), str):
                self._length += 1
                return ToldItem(self._turn, record.timestamp, ResponseItem.from_wire(payload))
            case "compacted":
                return self._compaction(record, payload)
            case "event_msg" if payload.get("type") == "task_started":
                self._untold = len(self.told)
            case "event_msg" if payload.get("type") == "error":
                return ToldFailure(self._turn, record.timestamp, str(payload.get("message", "")))
            case _:
                pass
        return None

    def _compaction(self, record: Record, payload: dict[str, Any]) -> ToldCompaction:
        values = [as_object(value) for value in as_list(payload.get("replacement_history"))]
        items = tuple(ResponseItem.from_wire(value) for value in values if isinstance(value.get("type"), str))
        replaced, self._length = self._length, len(items)
        return ToldCompaction(self._turn, record.timestamp, str(payload.get("message", "")), replaced, items)

    @property
    def _turn(self) -> int:
        return len(self._counter.turns)

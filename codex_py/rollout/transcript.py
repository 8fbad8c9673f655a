"""The turns of a stored session, its transcript, and the records that rewind it to an earlier turn.

The file keeps all that was. Codex CLI knows the record, and drops as many turns of the user.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.errors import UsageError, UserError
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.items import ResponseItem
from codex_py.rollout.format import rewound_payload
from codex_py.rollout.records import RolloutRecord, last_rewind, live_ranges, ranges_below, read_records, user_text
from codex_py.text.display import counted

_RECORD_TYPES: Final = frozenset({b"event_msg", b"session_meta"})


class StoredTurn(NamedTuple):
    """A turn with a message of the user; `number` counts from 1.

    Its records have ordinals from `begins` up to `ends`, which is None for the last turn of the file.
    """

    number: int
    prompt: str
    timestamp: str
    begins: int
    ends: int | None
    id: str = ""


class TurnCounter:
    """Counts the turns of a session from its records, which must be fed in order."""

    def __init__(self) -> None:
        self.turns: list[StoredTurn] = []
        self._begins: int | None = None
        self._id = ""

    def feed(self, record: RolloutRecord) -> None:
        if record.record_type == "event_msg" and record.payload.get("type") == "task_started":
            self._end_last(record.ordinal)
            self._begins = record.ordinal
            self._id = str(record.payload.get("turn_id") or "")
        elif (prompt := user_text(record)) is not None:
            self._begin(record, prompt)

    def forget_prompts(self) -> None:
        """Drop the text of the newest turn, so that memory does not grow with what users have pasted."""
        if self.turns:
            self.turns[-1] = self.turns[-1]._replace(prompt="")

    def _begin(self, record: RolloutRecord, prompt: str) -> None:
        # Sent while the turn was running: it belongs to that turn.
        if self._begins is None and self.turns and self.turns[-1].ends is None:
            return
        begins, turn_id = (record.ordinal, "") if self._begins is None else (self._begins, self._id)
        self._begins = None
        self.turns.append(StoredTurn(len(self.turns) + 1, prompt, record.timestamp, begins, None, turn_id))

    def _end_last(self, ordinal: int) -> None:
        if self.turns and self.turns[-1].ends is None:
            self.turns[-1] = self.turns[-1]._replace(ends=ordinal)


def read_turns(path: Path) -> tuple[StoredTurn, ...]:
    """The turns of a session, with those inherited by a fork. Raise `UserError` for a file that cannot be read."""
    counter = TurnCounter()
    for record in read_records(path, record_types=_RECORD_TYPES):
        counter.feed(record)
    return tuple(counter.turns)


def end_of_turn(path: Path, number: int) -> int | None:
    """The first ordinal after a turn; None for the last turn. Raise `UsageError` when there is no such turn."""
    turns = read_turns(path)
    check_turn(path, turns, number)
    return turns[number - 1].ends


def check_turn(path: Path, turns: Sequence[StoredTurn], number: int) -> None:
    """Raise `UsageError` when a session has no turn of this number."""
    if not 1 <= number <= len(turns):
        held = f"has {counted(len(turns), 'turn')}"
        raise UsageError(
            f"no turn {number} in session `{path.stem[-36:]}`, which {held}",
            hint=f"`codex-py sessions show {path.stem[-36:]}` numbers them",
        )


class TranscriptItem(NamedTuple):
    """An item of the history, decoded. `turn` is that of `read_turns`, 0 for what stands before the first."""

    turn: int
    timestamp: str
    value: dict[str, Any]


class TranscriptCompaction(NamedTuple):
    """A compaction: `items`, with a summary, replaced `replaced` items; old files have only a `message`."""

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
    """All items of a session, also those that compactions have replaced. Raise `UserError` for an unreadable file."""
    reader = _TranscriptReader()
    for record in read_records(path):
        reader.feed(record)
    return reader.entries


def iter_turns(path: Path) -> Iterator[tuple[int, list[TranscriptEntry]]]:
    """What `read_transcript` gives, turn by turn with its number: one is held at a time."""
    reader = _TranscriptReader()
    for record in read_records(path):
        reader.feed(record)
        if finished := reader.take_finished():
            yield from _by_turn(finished)
    yield from _by_turn(reader.entries)


def _by_turn(entries: Sequence[TranscriptEntry]) -> Iterator[tuple[int, list[TranscriptEntry]]]:
    for turn, group in groupby(entries, key=lambda entry: entry.turn):
        yield turn, list(group)


def before_compaction(transcript: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """The entries before the last compaction; empty if there was none."""
    return transcript[: _last_compaction(transcript)]


def live(transcript: list[TranscriptEntry]) -> list[TranscriptEntry]:
    """The last compaction and the entries after it; all entries if there was none."""
    return transcript[_last_compaction(transcript) :]


def _last_compaction(transcript: list[TranscriptEntry]) -> int:
    return max((index for index, entry in enumerate(transcript) if isinstance(entry, TranscriptCompaction)), default=0)


class _TranscriptReader:
    def __init__(self) -> None:
        self.entries: list[TranscriptEntry] = []
        self._counter = TurnCounter()
        self._unnumbered = 0
        self._begun = 0
        self._length = 0

    def take_finished(self) -> list[TranscriptEntry]:
        """Take what came before the turn that has just begun; nothing while none has begun since."""
        if not self._begun:
            return []
        finished, self.entries[: self._begun] = self.entries[: self._begun], []
        self._unnumbered -= self._begun
        self._begun = 0
        self._counter.forget_prompts()
        return finished

    def feed(self, record: RolloutRecord) -> None:
        before = len(self._counter.turns)
        self._counter.feed(record)
        if len(self._counter.turns) > before:
            self._begun = self._unnumbered
            self._number_the_prompt()
        entry = self._read(record)
        if entry is not None:
            self.entries.append(entry)

    def _number_the_prompt(self) -> None:
        """Give the first items of a turn its number: they come before the event with the user's message."""
        begun = self._counter.turns[-1]
        for index in range(self._unnumbered, len(self.entries)):
            self.entries[index] = self.entries[index]._replace(turn=begun.number)
        self._unnumbered = len(self.entries)

    def _read(self, record: RolloutRecord) -> TranscriptEntry | None:
        payload = record.payload
        match record.record_type:
            case "response_item" if isinstance(payload.get("type"), str):
                self._length += 1
                return TranscriptItem(self._turn, record.timestamp, payload)
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


_SHORTENED: Final = b'"text_elements":[{'
_MAX_PLACEHOLDER: Final = 500


def shown_messages(path: Path) -> dict[str, str]:
    """The messages that were shown in a shorter form, such as with a paste as a chip: that form by their text.

    A file that cannot be read has none.
    """
    try:
        with path.open("rb") as file:
            payloads = [as_object(as_object(decode_json(line)).get("payload")) for line in file if _SHORTENED in line]
    except (OSError, ValueError):
        return {}
    return {text: _shown(text, payload) for payload in payloads if isinstance(text := payload.get("message"), str)}


def _shown(text: str, payload: Mapping[str, Any]) -> str:
    raw, pieces, last = text.encode(errors="surrogatepass"), list[bytes](), 0
    for element in map(as_object, as_list(payload.get("text_elements"))):
        span, placeholder = as_object(element.get("byte_range")), element.get("placeholder")
        start, end = span.get("start"), span.get("end")
        if not (isinstance(start, int) and isinstance(end, int) and last <= start <= end <= len(raw) and placeholder):
            return text
        pieces += [raw[last:start], str(placeholder)[:_MAX_PLACEHOLDER].encode(errors="replace")]
        last = end
    return b"".join([*pieces, raw[last:]]).decode(errors="replace")


class RewindChoice(NamedTuple):
    """`to` is the number of a turn, `last` for the last one, or `latest` to undo the last rewind."""

    to: str
    files: bool = True
    conversation: bool = True
    copies_conflicts: bool = False
    dry_run: bool = False


class ConversationRewind(NamedTuple):
    """The `event_msg` that rewinds a conversation. `message` is the user's message of the turn before which it goes
    back, `turns` is how many turns are dropped, 0 when it undoes a rewind.
    """

    payload: dict[str, Any]
    message: str
    turns: int


def plan_conversation(path: Path, turns: Sequence[StoredTurn], number: int) -> ConversationRewind:
    """The rewind to before the turn with this number; `turns` are those of the session at `path`."""
    turn = turns[number - 1]
    count = len(turns) - number + 1
    live = ranges_below(live_ranges(path), turn.begins)
    return ConversationRewind(rewound_payload(count, live), turn.prompt, count)


def undo_conversation(path: Path) -> ConversationRewind:
    """The rewind that undoes the last one. Raise `UserError` when there was none."""
    ordinal = last_rewind(path)
    if ordinal is None:
        raise UserError("there is no rewind to undo in this conversation")
    live = ranges_below(live_ranges(path, ordinal), ordinal)
    return ConversationRewind(rewound_payload(0, live), "", 0)

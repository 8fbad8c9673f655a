"""`exec --json`: session events as the published lines, one JSON object each (see `exec/schema.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codex_py.exec import schema
from codex_py.exec.schema import Item, Line
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json


class JsonlPrinter:
    """A listener that writes lines through `write`, whole and in order. Item ids count up over the run."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._next_item = 0
        self._open: dict[str, str] = {}
        self._skills: list[events.SkillUsed] = []
        self._todo: Item | None = None

    def __call__(self, event: events.Event) -> None:
        for line in self._lines(event):
            self._write(_one_line(encode_json(line)) + b"\n")

    def _lines(self, event: events.Event) -> Iterator[Line]:
        match event:
            case events.SessionStarted():
                yield schema.thread_started(event.thread_id)
                if event.notice:
                    yield schema.item_completed(schema.error_item(self._item_id(), event.notice))
            case events.TurnStarted():
                self._skills.clear()
                yield schema.TURN_STARTED
            case events.SkillUsed():
                self._skills.append(event)
            case events.TurnCompleted():
                yield from self._todo_ended()
                yield schema.turn_completed(event.usage, self._skills)
            case events.TurnFailed(_, message):
                yield from self._todo_ended()
                yield schema.error(message)
                yield schema.turn_failed(message, self._skills)
            case events.TurnInterrupted():
                yield from self._todo_ended()
                yield schema.turn_failed("interrupted", self._skills)
            case events.Retrying():
                yield schema.error(describe_retry(event))
            case _:
                yield from self._item_lines(event)

    def _item_lines(self, event: events.Event) -> Iterator[Line]:
        match event:
            case events.Warned(message):
                yield schema.item_completed(schema.error_item(self._item_id(), message))
            case events.MessageDone(text):
                yield schema.item_completed(schema.agent_message(self._item_id(), text))
            case events.ReasoningDone(text):
                yield schema.item_completed(schema.reasoning(self._item_id(), text))
            case events.CommandStarted(call_id):
                yield schema.item_started(schema.command_started(self._item_id(call_id), event))
            case events.CommandFinished(call_id, status="in_progress"):
                yield schema.item_updated(schema.command_finished(self._item_id(call_id), event))
            case events.CommandFinished(call_id):
                yield schema.item_completed(schema.command_finished(self._ended_id(call_id), event))
            case events.PatchStarted(call_id, changes):
                yield schema.item_started(schema.file_change(self._item_id(call_id), changes, "in_progress"))
            case events.PatchFinished(call_id, changes, ok):
                status = "completed" if ok else "failed"
                yield schema.item_completed(schema.file_change(self._ended_id(call_id), changes, status))
            case events.PlanUpdated(steps):
                yield self._todo_changed(steps)
            case events.WebSearched():
                item = schema.web_search(self._item_id(), event)
                yield schema.item_started(item)
                yield schema.item_completed(item)
            case _:
                pass

    def _todo_changed(self, steps: Sequence[events.PlanStep]) -> Line:
        """The list is one item, from its first showing to the end of the turn."""
        if self._todo is None:
            self._todo = schema.todo_list(self._item_id(), steps)
            return schema.item_started(self._todo)
        self._todo = schema.todo_list(self._todo["id"], steps)
        return schema.item_updated(self._todo)

    def _todo_ended(self) -> Iterator[Line]:
        if self._todo is not None:
            yield schema.item_completed(self._todo)
            self._todo = None

    def _item_id(self, call_id: str | None = None) -> str:
        """The id of the item a call opened, or a new one."""
        if call_id is not None and call_id in self._open:
            return self._open[call_id]
        item_id = f"item_{self._next_item}"
        self._next_item += 1
        if call_id is not None:
            self._open[call_id] = item_id
        return item_id

    def _ended_id(self, call_id: str) -> str:
        item_id = self._item_id(call_id)
        del self._open[call_id]
        return item_id


def _one_line(text: bytes) -> bytes:
    """JSON that also those readers see as one line who break lines at U+2028, U+2029 and U+0085, as Node does."""
    for separator in ("\u2028", "\u2029", "\x85"):
        text = text.replace(separator.encode(), rf"\u{ord(separator):04x}".encode())
    return text


def describe_retry(event: events.Retrying) -> str:
    """One line on a retry; the head is the published form."""
    if event.limit is None:
        return f"Reconnecting... waiting for network ({event.message})"
    return f"Reconnecting... {event.attempt}/{event.limit} ({event.message})"

"""`exec --json`: session events as the published lines, one JSON object each (see `exec/schema.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from codex_py.exec import schema
from codex_py.exec.schema import Item, Line
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.failures import failure_code
from codex_py.render.plain import describe_retry
from codex_py.text.sanitize import sanitize_json
from codex_py.text.shorten import shortened

# A line with its newline stays below 64 KiB: some readers, one of the SDKs among them, take no longer ones.
MAX_BYTES: Final = 64 * 1024 - 1
# What a line about a patch holds beside the list of its files.
_AROUND_CHANGES: Final = 256
# What one of these holds beside its path.
_CHANGE_BYTES: Final = 64


class JsonlPrinter:
    """A listener that writes lines through `write`, in order. Item ids count up over the run.

    A line longer than `MAX_BYTES` is shortened, except messages of the model; these too with `short_messages`.
    """

    def __init__(self, write: Callable[[bytes], None], *, short_messages: bool = False) -> None:
        self._write = write
        self._short_messages = short_messages
        self._next_item = 0
        self._thread_id = ""
        # Several for one call when a model gives two calls the same id.
        self._open: dict[str, list[str]] = {}
        self._skills: list[events.SkillUsed | events.SkillSuggested] = []
        self._todo: Item | None = None

    def __call__(self, event: events.Event) -> None:
        whole = isinstance(event, events.MessageDone) and not self._short_messages
        for line in self._lines(event):
            encoded = _encode(line)
            if len(encoded) >= MAX_BYTES and not whole:
                encoded = _encode(shortened({**line, "shortened": True}, MAX_BYTES - 1, _encode))
            self._write(encoded + b"\n")

    def _lines(self, event: events.Event) -> Iterator[Line]:
        match event:
            case events.SessionStarted():
                self._thread_id = event.thread_id
                yield schema.thread_started(event.thread_id)
                if event.notice:
                    yield schema.item_completed(schema.error_item(self._item_id(), event.notice))
            case events.TurnStarted():
                self._skills.clear()
                yield schema.TURN_STARTED
            case events.SkillUsed() | events.SkillSuggested():
                self._skills.append(event)
            case events.TurnCompleted():
                yield from self._todo_ended()
                yield schema.turn_completed(event, self._skills)
            case events.TurnFailed(_, message):
                yield from self._todo_ended()
                yield schema.error(message)
                yield schema.turn_failed(message, failure_code(event.failure) or "internal", self._skills)
            case events.TurnInterrupted():
                # No `turn.failed`: clients that interrupted the run would take it for an error of the model.
                yield from self._todo_ended()
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
                yield schema.item_started(schema.command_started(self._started_id(call_id), event))
            case events.CommandFinished(call_id, status="in_progress"):
                yield schema.item_updated(schema.command_finished(self._open_id(call_id), event))
            case events.CommandFinished(call_id):
                yield schema.item_completed(schema.command_finished(self._ended_id(call_id), event))
            case events.PatchFinished(_, changes, ok):
                yield from self._patch_ended(changes, "completed" if ok else "failed")
            case events.McpCallStarted(call_id):
                yield schema.item_started(schema.mcp_call_started(self._started_id(call_id), event))
            case events.McpCallFinished(call_id):
                yield schema.item_completed(schema.mcp_call_finished(self._ended_id(call_id), event))
            case events.AgentCallStarted(call_id):
                yield schema.item_started(schema.agent_call_started(self._started_id(call_id), self._thread_id, event))
            case events.AgentCallFinished(call_id):
                ended = schema.agent_call_finished(self._ended_id(call_id), self._thread_id, event)
                yield schema.item_completed(ended)
            case events.ContextCompacted():
                yield schema.item_completed(schema.context_compaction(self._item_id(), event))
            case events.PlanUpdated(steps):
                yield self._todo_changed(steps)
            case events.WebSearched():
                item = schema.web_search(self._item_id(), event)
                yield schema.item_started(item)
                yield schema.item_completed(item)
            case _:
                pass

    def _patch_ended(self, changes: Sequence[events.FileChange], status: schema.PatchStatus) -> Iterator[Line]:
        """A patch as one item, or as several if there are more files than fit in a line."""
        for some in _batches(changes):
            yield schema.item_completed(schema.file_change(self._item_id(), some, status))

    def _todo_changed(self, steps: Sequence[events.PlanStep]) -> Line:
        """The plan is one item, started with the first plan and completed at the end of the turn."""
        if self._todo is None:
            self._todo = schema.todo_list(self._item_id(), steps)
            return schema.item_started(self._todo)
        self._todo = schema.todo_list(self._todo["id"], steps)
        return schema.item_updated(self._todo)

    def _todo_ended(self) -> Iterator[Line]:
        if self._todo is not None:
            yield schema.item_completed(self._todo)
            self._todo = None

    def _item_id(self) -> str:
        """A new item id."""
        item_id = f"item_{self._next_item}"
        self._next_item += 1
        return item_id

    def _started_id(self, call_id: str) -> str:
        item_id = self._item_id()
        self._open.setdefault(call_id, []).append(item_id)
        return item_id

    def _open_id(self, call_id: str) -> str:
        """The id of the first open item of a call; a new item if its start was not reported."""
        opened = self._open.get(call_id)
        return opened[0] if opened else self._started_id(call_id)

    def _ended_id(self, call_id: str) -> str:
        item_id = self._open_id(call_id)
        self._open[call_id].remove(item_id)
        return item_id


def _batches(changes: Sequence[events.FileChange]) -> Iterator[Sequence[events.FileChange]]:
    """The changes in groups that fit into a line each; one group when there are none."""
    start, available = 0, MAX_BYTES - _AROUND_CHANGES
    left = available
    for position, change in enumerate(changes):
        size = len(_encode(str(change.path))) + _CHANGE_BYTES
        if size > left and position > start:
            yield changes[start:position]
            start, left = position, available
        left -= size
    yield changes[start:]


def _encode(value: object) -> bytes:
    """JSON on one line, also for readers such as Node that break lines at U+2028, U+2029 and U+0085."""
    text = sanitize_json(encode_json(value))
    for separator in ("\u2028", "\u2029"):
        text = text.replace(separator.encode(), rf"\u{ord(separator):04x}".encode())
    return text

"""Stored items as events, and the turns of a stored session, for front ends that show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import Message, Reasoning, ResponseItem, ToolCall, WebSearchCall, view_of
from codex_py.protocol.readable import (
    arguments_of,
    command_of,
    is_host_text,
    outputs_by_call,
    patch_of,
    patch_report,
    patch_succeeded,
    plan_of,
    report_of,
    tool_type_of,
    was_answered,
    without_pictures,
    without_plan_tags,
)
from codex_py.protocol.value import Value
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.rollout.records import RolloutRecord, read_records

TurnEnd: TypeAlias = Literal["completed", "interrupted", "failed"]


class PastUserMessage(Value):
    """A message of the user; `pictures` are the URLs of the attached pictures."""

    text: str
    pictures: tuple[str, ...] = ()


class HostMessage(Value):
    """A message that the host sent in the user's role: context, a skill, a note about an interrupt or an agent."""

    text: str


class PastItem(Value):
    """An item as a message or an event; `id` is that of the call or search, empty for other items.

    For a call, the event is its end, and `output` is None when it has no output.
    """

    id: str
    happened: PastUserMessage | HostMessage | events.Event
    call: ToolCall | None = None
    output: str | None = None

    @property
    def is_shown(self) -> bool:
        """Whether clients of a server see it."""
        match self.happened:
            case HostMessage() | events.PatchFinished(changes=()):
                return False
            case _:
                return True


class PastTurn(Value):
    """One turn. Times are seconds since the epoch, None where they are not known.

    `end` is None for a turn without an end in the file: it is running, or was killed. `error` says why it failed.
    """

    id: str
    items: tuple[PastItem, ...] = ()
    end: TurnEnd | None = None
    error: str = ""
    began: float | None = None
    ended: float | None = None

    @property
    def is_users(self) -> bool:
        """Whether it has a message of the user; turns that only compact the history are not counted."""
        return any(isinstance(item.happened, PastUserMessage) for item in self.items)


def past_turns(path: Path) -> tuple[PastTurn, ...]:
    """Every turn of a stored session, those inherited by a fork first. Raises `UserError` for an unreadable file."""
    reader = _Reader()
    for record in read_records(path):
        reader.add(record)
    return reader.turns()


def past_items(items: Sequence[ResponseItem | dict[str, Any] | events.Event], cwd: Path) -> Iterator[PastItem]:
    """The items as messages and events in order; a call is placed where it was made, with its result.

    An item may be decoded already.
    """
    values = [item.decode() if isinstance(item, ResponseItem) else item for item in items]
    outputs = outputs_by_call(value for value in values if isinstance(value, dict))
    for value in values:
        if not isinstance(value, dict):
            yield PastItem("", value)
        elif not str(value.get("type")).endswith("_output"):
            yield from _past_item(value, outputs, cwd)


class _Reader:
    def __init__(self) -> None:
        self._turns: list[PastTurn] = []
        self._items: list[list[ResponseItem | events.Event]] = []
        self._directories: list[Path] = []
        self._failed = ""

    def add(self, record: RolloutRecord) -> None:
        payload = record.payload
        match record.record_type:
            case "event_msg":
                self._note(record, payload)
            case "turn_context" if self._directories and isinstance(cwd := payload.get("cwd"), str):
                self._directories[-1] = Path(cwd)
            case "response_item" if self._items and isinstance(payload.get("type"), str):
                self._items[-1].append(ResponseItem.from_wire(payload))
            case "compacted" if self._items:
                summary = str(payload.get("message", ""))
                self._items[-1].append(events.ContextCompacted(0, 0, "local", "user_requested", summary))
            case _:
                pass

    def turns(self) -> tuple[PastTurn, ...]:
        return tuple(
            turn.replace(items=tuple(item for item in past_items(items, directory) if item.is_shown))
            for turn, items, directory in zip(self._turns, self._items, self._directories, strict=True)
        )

    def _note(self, record: RolloutRecord, payload: Mapping[str, Any]) -> None:
        match payload.get("type"):
            case "task_started":
                turn_id = payload.get("turn_id")
                self._turns.append(
                    PastTurn(turn_id if isinstance(turn_id, str) else "", began=_seconds(record.timestamp))
                )
                self._items.append([])
                self._directories.append(self._directories[-1] if self._directories else Path("/"))
                self._failed = ""
            case "error":
                self._failed = str(payload.get("message", "")) or "the turn failed"
            case "task_complete":
                self._end(record, "failed" if self._failed else "completed")
            case "turn_aborted":
                self._end(record, "interrupted")
            case _:
                pass

    def _end(self, record: RolloutRecord, end: TurnEnd) -> None:
        if self._turns:
            ended = _seconds(record.timestamp)
            self._turns[-1] = self._turns[-1].replace(end=end, error=self._failed, ended=ended)


def _past_item(item: dict[str, Any], outputs: Mapping[str, str], cwd: Path) -> Iterator[PastItem]:
    match view_of(item):
        case Message("assistant", text):
            yield PastItem("", events.MessageDone(without_plan_tags(text)))
        case Message("user", text):
            message = without_pictures(text)
            pictures = tuple(_pictures(item))
            if is_host_text(message):
                yield PastItem("", HostMessage(message))
            elif message.strip() or pictures:
                yield PastItem("", PastUserMessage(message, pictures))
        case Reasoning(summary) if summary:
            yield PastItem("", events.ReasoningDone(summary))
        case ToolCall() as call:
            output = outputs.get(call.call_id)
            yield PastItem(call.call_id, _call_event(call, output, cwd), call, output)
        case WebSearchCall(item_id, query, action):
            yield PastItem(item_id, events.WebSearched(item_id, query, action))
        case _:
            pass


def _call_event(
    call: ToolCall, output: str | None, cwd: Path
) -> events.CommandFinished | events.PatchFinished | events.PlanUpdated | events.ToolCallFinished:
    """The event at the end of a stored call; `output` is None if there is none. An invalid patch has no changes.

    The duration is negative where the output does not say it.
    """
    tool_type = tool_type_of(call.name, call.namespace)
    if tool_type == "writes":
        ok = output is not None and patch_succeeded(output)
        return events.PatchFinished(call.call_id, changes_in_patch(patch_of(call), cwd), ok, patch_report(output))
    if tool_type == "plans" and was_answered(output):
        arguments = arguments_of(call)
        return events.PlanUpdated(plan_of(arguments.get("plan")), str(arguments.get("explanation") or ""))
    command = command_of(call) if tool_type == "runs" else None
    if command is None:
        tool = f"{call.namespace}.{call.name}" if call.namespace else call.name
        return events.ToolCallFinished(call.call_id, tool, call.arguments, was_answered(output), -1, output or "")
    report = report_of(output)
    return events.CommandFinished(
        call.call_id, command, cwd, report.printed, report.exit_code, report.seconds, report.status
    )


def _pictures(item: Mapping[str, Any]) -> Iterator[str]:
    for part in as_list(item.get("content")):
        url = as_object(part).get("image_url")
        if isinstance(url, str):
            yield url


def _seconds(stamp: str) -> float | None:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return None

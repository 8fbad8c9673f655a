"""What a session notes of its events: the work so far (plan, files, skills), the last message, the diffs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.readable import plan_of
from codex_py.protocol.value import Value

_MAX_DIFF_LENGTH: Final = 4 * 1024 * 1024
_LEFT_OUT: Final = "[the diffs of this session are too long to be kept: see the file itself]\n"


class WorkState(Value):
    """`files` are paths with what was done to each last (`add`, `update`, `delete`); `skills` paths with names."""

    plan: tuple[events.PlanStep, ...] = ()
    files: Mapping[str, str] = {}
    skills: Mapping[str, str] = {}

    def then(self, newer: WorkState) -> WorkState:
        """The state after more work: what was touched last stands last, and a new plan replaces the old one."""
        return WorkState(newer.plan or self.plan, _joined(self.files, newer.files), _joined(self.skills, newer.skills))

    def to_record(self) -> dict[str, Any]:
        """As JSON for the rollout."""
        return {
            "plan": [{"step": step.text, "status": step.status} for step in self.plan],
            "files": [{"path": path, "kind": change} for path, change in self.files.items()],
            "skills": [{"name": name, "path": path} for path, name in self.skills.items()],
        }

    @classmethod
    def from_record(cls, record: object) -> WorkState:
        """Read `to_record` back; what makes no sense is left out."""
        fields = as_object(record)
        return cls(
            plan_of(fields.get("plan")), _pairs(fields.get("files"), "kind"), _pairs(fields.get("skills"), "name")
        )


class WorkLog:
    """Keeps the state up to date from the events of a session."""

    def __init__(self) -> None:
        self.state = WorkState()

    def note(self, event: events.Event) -> None:
        """Note an event; most say nothing about the work."""
        match event:
            case events.PlanUpdated(steps):
                self.state = self.state.replace(plan=steps)
            case events.PatchFinished(_, changes, True):
                self.state = self.state.then(WorkState(files=_outcomes(changes)))
            case events.SkillUsed(name, _, path):
                self.state = self.state.then(WorkState(skills={str(path): name}))
            case _:
                pass


class SessionNotes:
    """Kept from the events, so that there is no secret in it. Of all diffs together 4 MiB are kept."""

    def __init__(self) -> None:
        self._last_message: str | None = None
        self._diffs: dict[str, str] = {}
        self._available = _MAX_DIFF_LENGTH

    def note_event(self, event: events.Event) -> None:
        """Note an event; most are ignored."""
        match event:
            case events.MessageDone(text):
                self._last_message = text
            case events.PatchFinished(_, changes, True):
                for change in changes:
                    self._note_change(change)
            case _:
                pass

    def last_message_in(self, items: Sequence[ResponseItem]) -> str | None:
        """The model's last message: the one noted last, else the last one of an earlier run's `items`."""
        if self._last_message is None:
            views = (item.view() for item in reversed(items) if item.type == "message")
            found = (view.text for view in views if isinstance(view, Message) and view.role == "assistant")
            self._last_message = next(found, None)
        return self._last_message

    def changes_of(self, files: Mapping[str, str]) -> tuple[events.FileChange, ...]:
        """The changes to `files`, which are paths with what was done to each last, and the diffs as far as noted."""
        return tuple(
            events.FileChange(Path(path), _change_type(change), diff=self._diffs.get(path, ""))
            for path, change in files.items()
        )

    def _note_change(self, change: events.FileChange) -> None:
        path = str(change.move_path or change.path)
        before = self._diffs.pop(str(change.path), "") if change.move_path else self._diffs.get(path, "")
        if len(change.diff) > self._available:
            self._diffs[path] = before if before.endswith(_LEFT_OUT) else before + _LEFT_OUT
            return
        self._available -= len(change.diff)
        self._diffs[path] = before + change.diff


def _outcomes(changes: Sequence[events.FileChange]) -> dict[str, str]:
    outcomes: dict[str, str] = {}
    for change in changes:
        if change.move_path is not None:
            outcomes[str(change.path)] = "delete"
        path = str(change.move_path or change.path)
        # What was touched last stands last.
        outcomes.pop(path, None)
        outcomes[path] = change.kind
    return outcomes


def _joined(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    return {**{path: value for path, value in before.items() if path not in after}, **after}


def _pairs(entries: object, key: str) -> dict[str, str]:
    return {
        path: value
        for entry in map(as_object, as_list(entries))
        if isinstance(path := entry.get("path"), str) and isinstance(value := entry.get(key), str)
    }


def _change_type(name: str) -> Literal["add", "delete", "update"]:
    return "add" if name == "add" else "delete" if name == "delete" else "update"

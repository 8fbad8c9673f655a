"""What front ends ask of a session's past: the model's last word, and what its patches did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.protocol import events
from codex_py.protocol.items import Message, ResponseItem

_MAX_DIFF_LENGTH: Final = 4 * 1024 * 1024
_LEFT_OUT: Final = "[the diffs of this session are too long to be kept: see the file itself]\n"


class SessionNotes:
    """Kept from the events, so that there is no secret in it. Of all diffs together 4 MiB are kept."""

    def __init__(self) -> None:
        self._last_message: str | None = None
        self._diffs: dict[str, str] = {}
        self._available = _MAX_DIFF_LENGTH

    def note_event(self, event: events.Event) -> None:
        """Hear an event; most are not noted."""
        match event:
            case events.MessageDone(text):
                self._last_message = text
            case events.PatchFinished(_, changes, True):
                for change in changes:
                    self._note_change(change)
            case _:
                pass

    def last_message_in(self, items: Sequence[ResponseItem]) -> str | None:
        """The model's last message: what was heard, else the last one of an earlier run's `items`."""
        if self._last_message is None:
            views = (item.view() for item in reversed(items) if item.type == "message")
            found = (view.text for view in views if isinstance(view, Message) and view.role == "assistant")
            self._last_message = next(found, None)
        return self._last_message

    def changes_of(self, files: Mapping[str, str]) -> tuple[events.FileChange, ...]:
        """The changes to `files`, which are paths with what was done to each last, and the diffs as far as heard."""
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


def _change_type(name: str) -> Literal["add", "delete", "update"]:
    return "add" if name == "add" else "delete" if name == "delete" else "update"

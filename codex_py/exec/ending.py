"""How a run of `exec` ends: what it left running is stopped, and whether it did its work is decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from codex_py.core.session import Session
from codex_py.protocol import events
from codex_py.text.excerpt import first_words

_MAX_SHOWN: Final = 200
_NO_ANSWER: Final = "the turn ended without an answer"

_End: TypeAlias = events.TurnCompleted | events.TurnFailed | events.TurnInterrupted


class Ending:
    """A listener that passes events on to `show` and keeps the end of the turn back until `finish`.

    `needs_answer` says that a turn without a final message has failed.
    """

    def __init__(self, show: Callable[[events.Event], None], *, needs_answer: bool) -> None:
        self._show = show
        self._needs_answer = needs_answer
        self._end: _End | None = None
        self._ran_command = False
        self._no_sandbox: str | None = None
        self.answer: str | None = None
        self.completed = False

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self._end = event
            case events.Warned(message, code="sandbox_missing"):
                self._no_sandbox = message
            case events.TurnStarted():
                # Input that came too late for a turn begins another one.
                self._show_end()
                self._show(event)
            case _:
                if isinstance(event, events.CommandFinished) and event.status != "declined":
                    self._ran_command = True
                self._show(event)

    async def finish(self, session: Session) -> None:
        """Stop the commands that still run and show the end of the turn; sets `completed` and `answer`."""
        for process in session.processes():
            await session.stop_process(process.id)
            shown = first_words(process.command, _MAX_SHOWN)
            session.warn(f"`{shown}` was still running when the turn ended, and was stopped")
        self._show_end()

    def _show_end(self) -> None:
        end, self._end = self._end, None
        if end is None:
            return
        failure = self._failure(end)
        if self._no_sandbox and failure != self._no_sandbox:
            self._show(events.Warned(self._no_sandbox))
        self._show(end if failure is None else events.TurnFailed(end.turn_id, failure))
        self.completed = isinstance(end, events.TurnCompleted) and failure is None
        self.answer = end.last_message if isinstance(end, events.TurnCompleted) and failure is None else None

    def _failure(self, end: _End) -> str | None:
        """Why a turn that the model has completed did not do its work; None when it did."""
        if not isinstance(end, events.TurnCompleted):
            return None
        if self._no_sandbox and not self._ran_command:
            return self._no_sandbox
        return _NO_ANSWER if self._needs_answer and not (end.last_message or "").strip() else None

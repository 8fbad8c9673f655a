"""Hooks that are notified and decide nothing: a skill is used, the session waits for the user."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from codex_py.context.hooks import hook_context
from codex_py.core.hook_runner import HookRunner
from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    Question,
)
from codex_py.text.excerpt import first_words

IDLE_SECONDS: Final = 60.0
_SHOWN: Final = 200


class HookSignals:
    """A listener. The user counts as waited for once nothing has happened for `idle_seconds` after a turn."""

    def __init__(self, runner: HookRunner, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._runner = runner
        self._idle_seconds = idle_seconds
        self._timer: asyncio.TimerHandle | None = None

    def note_event(self, event: events.Event) -> None:
        """Hear an event; hooks run beside whatever goes on."""
        match event:
            case events.SkillUsed(name, scope, path, use):
                fields = {"skill_name": name, "skill_scope": scope, "skill_path": str(path), "kind": use}
                self._signal("SkillUse", fields)
            case events.QuestionRaised(question):
                self._notify(_notification_type_of(question), _message_of(question))
            case events.TurnStarted():
                self.stop()
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self._wait_for_user()
            case _:
                pass

    def stop(self) -> None:
        """The user is not waited for any longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait_for_user(self) -> None:
        self.stop()
        if self._runner.engine.has("Notification") and self._runner.context.agent_type is None:
            loop = asyncio.get_running_loop()
            message = "codex-py waits for your input"
            self._timer = loop.call_later(self._idle_seconds, self._notify, "idle_prompt", message)

    def _notify(self, notification_type: str, message: str) -> None:
        self._signal("Notification", {"notification_type": notification_type, "message": message, "title": "codex-py"})

    def _signal(self, event: str, fields: dict[str, Any]) -> None:
        if self._runner.engine.has(event):
            self._runner.start(self._fire(event, fields))

    async def _fire(self, event: str, fields: dict[str, Any]) -> None:
        verdict = await self._runner.fire(event, fields)
        for text in verdict.contexts:
            self._runner.services.note(hook_context(text))


def _notification_type_of(question: Question) -> str:
    asks = isinstance(question, ApprovalQuestion | PermissionsQuestion | McpInstallQuestion)
    return "permission_prompt" if asks else "elicitation_dialog"


def _message_of(question: Question) -> str:
    match question:
        case ApprovalQuestion(command=command):
            return f"codex-py needs your permission: {first_words(command, _SHOWN)}"
        case PermissionsQuestion():
            return "codex-py needs your permission for more than the sandbox allows"
        case _:
            return "codex-py has a question"

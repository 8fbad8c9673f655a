"""Hooks that are notified and decide nothing: a skill is used, the session waits for the user, the session ends."""

from __future__ import annotations

from codex_py.context.host_messages import hook_context
from codex_py.hooks.dispatcher import HookRunner
from codex_py.protocol import events
from codex_py.protocol.questions import ApprovalQuestion
from codex_py.protocol.questions import McpInstallQuestion
from codex_py.protocol.questions import PermissionsQuestion
from codex_py.protocol.questions import Question
from codex_py.text.display import first_words
from collections.abc import Awaitable
from typing import Any
from typing import Final
import asyncio


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


# A session that ends waits so long for its hooks, whatever their own time is.
ENDING_SECONDS: Final = 10.0


class HookEnding:
    """Waits for the last hooks of a session. `reason` is why it ends, as far as nobody says otherwise."""

    def __init__(self, runner: HookRunner, reason: str) -> None:
        self._runner = runner
        self._reason = reason
        self._limit: asyncio.Timeout | None = None
        self._is_cut_short = False

    def because(self, reason: str) -> None:
        """Say why the session is about to end: `clear` for a new one, `resume` for another one."""
        self._reason = reason

    def cut_short(self) -> None:
        """Let a session that ends wait no longer; nothing where it does not end."""
        if self._limit is not None and not self._limit.expired():
            self._is_cut_short = True
            self._limit.reschedule(0.0)

    async def wait(self, *, run_hooks: bool) -> None:
        """Wait for background work, and before it, with `run_hooks`, for the SessionEnd hooks."""
        if run_hooks and not await self._in_time(self._runner.fire("SessionEnd", {"reason": self._reason}, turn=False)):
            timed_out = f"did not end within {ENDING_SECONDS:g} s and were killed"
            self._runner.services.warn(f"SessionEnd hooks {'were stopped' if self._is_cut_short else timed_out}")
        in_time = not self._is_cut_short and await self._in_time(self._runner.finish())
        if not in_time and await self._runner.stop():
            self._runner.services.warn("hooks that nobody waited for had not ended with the session and were stopped")

    async def _in_time(self, work: Awaitable[object]) -> bool:
        """Whether something ends before the time for it is up."""
        try:
            async with asyncio.timeout(ENDING_SECONDS) as self._limit:
                await work
        except TimeoutError:
            return False
        finally:
            self._limit = None
        return True

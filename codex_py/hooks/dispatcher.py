"""Runs hooks for a session: their shared input, their messages to the user, and background hooks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from typing import Any, Final

from codex_py.context.host_messages import hook_context
from codex_py.core.ports import HookSession
from codex_py.core.session_request import SessionRequest
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.core.turn_context import TurnSettings
from codex_py.hooks.answer import HookVerdict, combine_answers
from codex_py.hooks.engine import HookEngine, HookExecution, ScheduledHook
from codex_py.hooks.schema import Hook
from codex_py.programs import ProbeResults
from codex_py.protocol import events
from codex_py.protocol.encoding import decode_json, encode_json
from codex_py.protocol.policy import DangerFullAccess
from codex_py.protocol.questions import ApprovalQuestion, McpInstallQuestion, PermissionsQuestion, Question
from codex_py.protocol.status import HooksRan
from codex_py.protocol.value import Value
from codex_py.text.display import first_words
from codex_py.tools.hook_calls import HookToolCall

# Hooks that take longer than this are named to the user.
SLOW_SECONDS: Final = 10.0
# The user counts as waited for when nothing has happened for so long after a turn.
IDLE_SECONDS: Final = 60.0
# A session that ends waits so long for its hooks, whatever their own timeouts are.
ENDING_SECONDS: Final = 10.0
_MAX_NAMED: Final = 3
_MAX_SHOWN: Final = 200
# Their input has no `turn_id`.
_OUTSIDE_TURNS: Final = ("Setup", "SessionStart", "SessionEnd")
# When one of these ends the turn, the turn itself reports it.
_BEFORE_A_TURN: Final = ("Setup", "SessionStart", "SubagentStart", "UserPromptSubmit")
# There is nothing left to end, and `close` limits the wait for it.
_LAST: Final = "SessionEnd"


class HookContext(Value):
    """The session that hooks run for: one of the user's, or an agent's with its role and its name.

    `env` is what commands get, `parent` the id of the user's session that an agent belongs to. `known` is shared by the
    sandboxes of the session.
    """

    request: SessionRequest
    env: Mapping[str, str]
    thread_id: str
    agent_type: str | None = None
    agent_name: str = ""
    parent: str = ""
    known: ProbeResults | None = None

    @property
    def source(self) -> str:
        """How the session began."""
        request = self.request
        return "fork" if request.forks else "resume" if request.resume else "clear" if request.follows else "startup"

    @property
    def agent(self) -> dict[str, str]:
        """An agent's session and role, as its hooks get them; empty for the user's own session."""
        return {} if self.agent_type is None else {"agent_id": self.thread_id, "agent_type": self.agent_type}

    @property
    def teammate(self) -> dict[str, str]:
        """An agent and its session in Claude Code's words; empty for the user's own session."""
        return {"teammate_name": self.agent_name, "team_name": self.parent} if self.parent else {}


class HookDispatcher:
    """Runs the hooks of one session. `halted` is why a hook has ended all work of the running turn.

    `session` is set before the first hook runs. Hooks that are waited for longer than `slow_seconds` are named to the
    user once.
    """

    session: HookSession

    def __init__(self, engine: HookEngine, context: HookContext, *, slow_seconds: float = SLOW_SECONDS) -> None:
        request = context.request
        self.engine: Final = engine
        self.context: Final = context
        self.halted: str | None = None
        self._slow_seconds = slow_seconds
        self._turn_id = ""
        self._sandbox = ProgramSandbox(request.loaded, home=request.home, env=context.env, known=context.known)
        self._background: set[asyncio.Task[None]] = set()
        self._limit: asyncio.Timeout | None = None
        self._was_stopped = False

    @property
    def transcript_path(self) -> str | None:
        """The session's file; None where none is written."""
        path = self.session.transcript.path
        return None if path is None else str(path)

    def warn(self, message: str) -> None:
        """Warn the user; the work goes on."""
        self.session.listeners.warn(message)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins: what ended the one before is over."""
        self._turn_id = turn_id
        self.halted = None

    async def fire(self, event: str, fields: Mapping[str, Any]) -> HookVerdict:
        """Run the hooks of an event."""
        return await self._run(event, self.engine.schedule(event, fields))

    async def fire_about(
        self, event: str, hook_calls: Sequence[HookToolCall], fields: Mapping[str, Any]
    ) -> HookVerdict:
        """Run the hooks of an event of a tool call."""
        return await self._run(event, self.engine.schedule_for_calls(event, hook_calls, fields))

    def fire_beside(self, event: str, fields: Mapping[str, Any]) -> None:
        """Run the hooks of an event beside the turn."""

        async def fire() -> None:
            self.add_contexts(await self.fire(event, fields))

        if self.engine.has(event):
            self._start(fire())

    def add_contexts(self, verdict: HookVerdict) -> None:
        """Put what hooks add to the context into the next request."""
        for text in verdict.contexts:
            self.session.pending.add(hook_context(text))

    def stop_waiting(self) -> None:
        """Let a session that is closing wait no longer; does nothing when it is not closing."""
        if self._limit is not None and not self._limit.expired():
            self._was_stopped = True
            self._limit.reschedule(0.0)

    async def close(self, reason: str | None) -> None:
        """Run the SessionEnd hooks, if there is a `reason`, and wait for those in the background."""
        if reason is not None and not await self._in_time(self.fire(_LAST, {"reason": reason})):
            timed_out = f"did not end within {ENDING_SECONDS:g} s and were killed"
            self.warn(f"SessionEnd hooks {'were stopped' if self._was_stopped else timed_out}")
        in_time = not self._was_stopped and await self._in_time(self.finish())
        if not in_time and self._background:
            for task in self._background:
                task.cancel()
            await self.finish()
            self.warn("hooks that nobody waited for had not ended with the session and were stopped")

    async def finish(self) -> None:
        """Wait for all that runs beside the turn."""
        while self._background:
            await asyncio.wait(self._background)

    async def _in_time(self, work: Awaitable[object]) -> bool:
        try:
            async with asyncio.timeout(ENDING_SECONDS) as self._limit:
                await work
        except TimeoutError:
            return False
        finally:
            self._limit = None
        return True

    async def _run(self, event: str, scheduled: Sequence[ScheduledHook]) -> HookVerdict:
        if not scheduled:
            return HookVerdict()
        if background := [item for item in scheduled if item.hook.background]:
            self._start(self._run_in_background(event, background))
        now = [item for item in scheduled if not item.hook.background]
        slow = asyncio.get_running_loop().call_later(self._slow_seconds, self._warn_slow, [item.hook for item in now])
        try:
            verdict = await self._answer(event, now)
        finally:
            slow.cancel()
        self._report(event, verdict)
        return verdict

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _run_in_background(self, event: str, scheduled: Sequence[ScheduledHook]) -> None:
        verdict = await self._answer(event, scheduled)
        self._report(event, verdict.replace(stop=None))
        self.add_contexts(verdict)

    async def _answer(self, event: str, scheduled: Sequence[ScheduledHook]) -> HookVerdict:
        """Run hooks and combine their answers, with the secrets of the session removed."""
        began = time.monotonic()
        runs = await self.engine.run(scheduled, self._execution(event))
        verdict = combine_answers([(run.hook, run.answer) for run in runs])
        refused = verdict.permission == "deny" or verdict.blocks or verdict.stop is not None
        self.session.listeners.emit(HooksRan(event, len(runs), time.monotonic() - began, refused))
        if not (verdict.reason or verdict.contexts or verdict.stop):
            return verdict
        texts = encode_json([verdict.reason, verdict.contexts, verdict.stop])
        reason, contexts, stop = decode_json(self.session.secrets.redact_bytes(texts))
        return verdict.replace(reason=reason, contexts=tuple(contexts), stop=stop)

    def _warn_slow(self, hooks: Sequence[Hook]) -> None:
        labels = list(dict.fromkeys(f"`{hook.label}`" for hook in hooks if hook.event != _LAST))
        if labels:
            shown = ", ".join([*labels[:_MAX_NAMED], *(["…"] if len(labels) > _MAX_NAMED else [])])
            limit = max(hook.timeout for hook in hooks)
            self.session.listeners.warn_once(
                f"still waiting for {hooks[0].event} hooks, for {limit:g} s at most: {shown}"
            )

    def _report(self, event: str, verdict: HookVerdict) -> None:
        for message in verdict.messages:
            self.warn(message)
        for warning in verdict.warnings:
            self.session.listeners.warn_once(warning)
        if verdict.stop is not None and self.halted is None and event != _LAST:
            self.halted = verdict.stop
            if event not in _BEFORE_A_TURN:
                self.warn(f"a {event} hook ends the turn: {verdict.stop}")

    def _execution(self, event: str) -> HookExecution:
        settings = self.session.settings.now.in_force()
        return HookExecution(
            fields=self._shared_fields(event),
            project=self.engine.found.project,
            cwd=settings.cwd,
            env=self.context.env,
            policy=settings.sandbox_policy,
            sandbox=self._sandbox,
        )

    def _shared_fields(self, event: str) -> dict[str, Any]:
        context, settings = self.context, self.session.settings.now
        shared: dict[str, Any] = {
            "session_id": context.parent or context.thread_id,
            "transcript_path": self.transcript_path,
            "cwd": str(settings.cwd),
            "permission_mode": _permission_mode(settings),
            "model": settings.model.model,
        }
        if self._turn_id and event not in _OUTSIDE_TURNS:
            shared["turn_id"] = self._turn_id
        return shared | context.agent


def _permission_mode(settings: TurnSettings) -> str:
    """The policies of a turn in Claude Code's words."""
    if settings.plan:
        return "plan"
    if settings.approval == "never":
        return "bypassPermissions" if isinstance(settings.sandbox_policy, DangerFullAccess) else "dontAsk"
    return "default"


class HookSignals:
    """A listener that runs the hooks which only take note: a skill is used, or the session waits for the user."""

    def __init__(self, dispatcher: HookDispatcher, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._dispatcher = dispatcher
        self._idle_seconds = idle_seconds
        self._timer: asyncio.TimerHandle | None = None

    def note_event(self, event: events.Event) -> None:
        """Run the hooks of an event beside whatever goes on."""
        match event:
            case events.SkillUsed(name, scope, path, use):
                fields = {"skill_name": name, "skill_scope": scope, "skill_path": str(path), "kind": use}
                self._dispatcher.fire_beside("SkillUse", fields)
            case events.QuestionRaised(question):
                self._notify(*_notification_of(question))
            case events.TurnStarted():
                self.stop()
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self.stop()
                if self._dispatcher.engine.has("Notification") and self._dispatcher.context.agent_type is None:
                    loop = asyncio.get_running_loop()
                    message = "codex-py waits for your input"
                    self._timer = loop.call_later(self._idle_seconds, self._notify, "idle_prompt", message)
            case _:
                pass

    def stop(self) -> None:
        """The user is not waited for any longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _notify(self, notification_type: str, message: str) -> None:
        fields = {"notification_type": notification_type, "message": message, "title": "codex-py"}
        self._dispatcher.fire_beside("Notification", fields)


def _notification_of(question: Question) -> tuple[str, str]:
    """The notification type of a question, and the message."""
    match question:
        case ApprovalQuestion(command=command):
            return "permission_prompt", f"codex-py needs your permission: {first_words(command, _MAX_SHOWN)}"
        case PermissionsQuestion():
            return "permission_prompt", "codex-py needs your permission for more than the sandbox allows"
        case McpInstallQuestion():
            return "permission_prompt", "codex-py has a question"
        case _:
            return "elicitation_dialog", "codex-py has a question"

"""A session: owns the conversation, runs one turn at a time, tells its listeners."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

from codex_py.context.aborted import turn_aborted
from codex_py.context.initial import ContextSnapshot, context_items
from codex_py.core.history import History
from codex_py.core.questions import Questions
from codex_py.core.sampling import Sampler, ToolCrash
from codex_py.core.secrets import Secrets
from codex_py.core.session_skills import MissingVariable, SessionSkills
from codex_py.core.tool_runs import ToolParts, ToolRuns
from codex_py.core.transcript import Transcript
from codex_py.core.turn import Turn
from codex_py.core.turn_context import ModelSettings, TurnContext
from codex_py.core.user_message import user_message
from codex_py.errors import CodexError, ModelError
from codex_py.model.client import ModelClient
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.ids import uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import Answer, Interrupt, Op, UserTurn
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.questions import SecretQuestion
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value
from codex_py.rollout.reader import StoredSession
from codex_py.rollout.recorder import Recorder
from codex_py.text.redact import Redactor

Listener = Callable[[events.Event], None]


class KnownContext(NamedTuple):
    """What the model should know at this moment, and what the user should know about that."""

    snapshot: ContextSnapshot
    warnings: tuple[str, ...] = ()


class SessionParts(Value):
    """Everything a session is built from. `snapshot` is asked at the start of each turn, with the list of skills."""

    thread_id: str
    provider_name: str
    cwd: Path
    settings: ModelSettings
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    model: ModelClient
    tools: ToolParts
    open_recorder: Callable[[Callable[[str], None]], Recorder]
    redactor: Redactor
    snapshot: Callable[[str], KnownContext]
    skills: SessionSkills
    report_crash: Callable[[BaseException], str]
    stored: StoredSession | None = None
    warnings: tuple[str, ...] = ()
    notice: str | None = None


class Session:
    """One conversation with the model. A front end submits ops and listens to events."""

    def __init__(self, parts: SessionParts) -> None:
        self._parts = parts
        self._listeners: list[Listener] = []
        self._running: asyncio.Task[str | None] | None = None
        self._interrupted = False
        self._begun = False
        self._told: ContextSnapshot | None = None
        self._questions = Questions(self._emit)
        self._secrets = Secrets(parts.redactor)
        self._runs = ToolRuns(
            parts.tools, self._secrets, self._questions, emit=self._emit_of_tool, warn=self._warn_once
        )
        self._usage = TokenUsage()
        self._warned: set[str] = set()
        self._transcript = Transcript(parts.open_recorder(self.warn), self._secrets.redact_bytes)
        self.history = History(self._record)
        if parts.stored is not None:
            self._take_over(parts.stored)

    @property
    def thread_id(self) -> str:
        return self._parts.thread_id

    def subscribe(self, listener: Listener) -> None:
        """Hear every event from now on, in order, on the loop's thread."""
        self._listeners.append(listener)

    async def submit(self, op: Op) -> None:
        """Carry out an op. A turn is over when this returns, and never raises for what went wrong within it.

        Raises `UserError` for an input that cannot be read, before anything has begun.
        """
        match op:
            case UserTurn():
                await self._user_turn(op)
            case Interrupt():
                self.interrupt()
            case Answer(question_id, value):
                self._questions.answer(question_id, value)

    def interrupt(self) -> None:
        """Stop the running turn, or the one that is about to start; returns at once."""
        self._interrupted = True
        if self._running is not None:
            self._running.cancel()

    async def close(self) -> None:
        """Stop every process, close the connection and the rollout. Safe to call more than once."""
        await self._runs.close()
        await self._parts.model.aclose()
        self._transcript.close()

    def warn(self, message: str) -> None:
        """Tell the user something; the work goes on."""
        self._emit(events.Warned(message))

    def _warn_once(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            self.warn(message)

    def _take_over(self, stored: StoredSession) -> None:
        self.history.adopt(stored.items)
        self._told = ContextSnapshot.from_record(stored.world_state)
        self._usage = stored.usage

    async def _user_turn(self, op: UserTurn) -> None:
        parts = self._parts
        message = await user_message(op.input, cwd=parts.cwd)
        self._begin()
        for warning in parts.skills.refresh():
            self._warn_once(warning)
        turn = TurnContext(
            turn_id=uuid7(),
            thread_id=parts.thread_id,
            cwd=parts.cwd,
            settings=parts.settings,
            sandbox_policy=parts.sandbox_policy,
            approval=parts.approval,
            output_schema=None if op.output_schema is None else encode_json(op.output_schema),
        )
        self._runs.new_turn()
        self._emit(events.TurnStarted(turn.turn_id))
        self._transcript.turn_started(turn)
        # An earlier run may have died between a call and its output.
        self.history.close_open_calls()
        self._tell_context(turn)
        await self._within(turn, self._work(turn, op, message))

    async def _work(self, turn: TurnContext, op: UserTurn, message: ResponseItem | None) -> str | None:
        """From the skills the user named to the model's last word."""
        missing = self._inject_skills(op)
        if message is not None:
            self.history.append(message)
            self._transcript.user_message(message)
        # Asked only now, so that what the user said is kept when the answer never comes.
        for variable in missing:
            await self._ask_for(variable)
        return await self._sample(turn)

    def _inject_skills(self, op: UserTurn) -> tuple[MissingVariable, ...]:
        """Put the skills the user named before the model; gives back what they lack."""
        asked = self._parts.skills.asked_for(op.input)
        for notice in asked.notices:
            self.warn(notice)
        for line in asked.once:
            self._warn_once(line)
        for skill in asked.skills:
            for use in self._parts.skills.note_use(skill, "explicit"):
                self._emit(use)
        self._secrets.give(asked.granted)
        self.history.append(*asked.items)
        return asked.missing

    async def _ask_for(self, missing: MissingVariable) -> None:
        """Ask for a variable, once a session; where nobody can be asked, say so and go on."""
        if self._secrets.was_asked_for(missing.name):
            return
        if self._parts.tools.can_ask:
            question = SecretQuestion(uuid7(), missing.name, missing.skill, missing.why)
            self._secrets.give({missing.name: await self._questions.ask(question)})
        if not self._secrets.has(missing.name):
            self._warn_once(missing.warning)

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        parts = self._parts
        self._emit(
            events.SessionStarted(
                thread_id=parts.thread_id,
                model=parts.settings.model,
                provider=parts.provider_name,
                cwd=parts.cwd,
                approval=parts.approval,
                sandbox=parts.sandbox_policy,
                effort=parts.settings.effort,
                summary=parts.settings.summary,
                resumed=len(self.history.items),
                notice=parts.notice,
            )
        )
        for warning in parts.warnings:
            self.warn(warning)

    def _tell_context(self, turn: TurnContext) -> None:
        """Append what the model has not been told yet."""
        now, warnings = self._parts.snapshot(self._parts.skills.instructions())
        for warning in warnings:
            self._warn_once(warning)
        self.history.append(*context_items(self._told, now))
        if now != self._told:
            self._transcript.context_told(now.to_record())
        self._told = now
        self._transcript.turn_settings(turn)

    async def _sample(self, turn: TurnContext) -> str | None:
        sampler = Sampler(
            turn=turn,
            history=self.history,
            model=self._parts.model,
            tools=self._runs.registry,
            run_tool=lambda call: self._runs.run(call, turn),
            emit=self._emit,
            expect_call=lambda: self._runs.warm_up(turn),
            saved=self._transcript.saved,
        )
        return await Turn(sampler, self._note_usage).run()

    async def _within(self, turn: TurnContext, work: Coroutine[Any, Any, str | None]) -> None:
        """Run the work of a turn; whatever becomes of it is recorded and told."""
        self._running = asyncio.create_task(work)
        if self._interrupted:
            self._running.cancel()
        try:
            last = await self._running
        except ModelError as error:
            self._fail(turn, str(error))
        except ToolCrash as error:
            self._fail(turn, self._parts.report_crash(error.__cause__ or error))
        except asyncio.CancelledError:
            if not self._running.cancelled():
                # Not an interrupt: whoever runs this session is being stopped.
                self._running.cancel()
                with contextlib.suppress(asyncio.CancelledError, CodexError, ToolCrash):
                    await self._running
                self._interrupt(turn)
                raise
            self._interrupt(turn)
        else:
            self._transcript.turn_completed(turn, last)
            await self._transcript.saved()
            self._emit(events.TurnCompleted(turn.turn_id, last, self._usage))
        finally:
            self._running = None
            self._interrupted = False

    def _fail(self, turn: TurnContext, message: str) -> None:
        message = self._secrets.redact(message)
        self.history.close_open_calls()
        self._transcript.turn_failed(turn, message)
        self._emit(events.TurnFailed(turn.turn_id, message))

    def _interrupt(self, turn: TurnContext) -> None:
        self.history.close_open_calls()
        self.history.append(turn_aborted())
        self._transcript.turn_interrupted(turn)
        self._emit(events.TurnInterrupted(turn.turn_id))

    def _emit_of_tool(self, event: events.Event) -> None:
        self._emit(event)
        if isinstance(event, events.CommandStarted):
            for use in self._parts.skills.used_by(event.command, event.cwd):
                self._emit(use)

    def _note_usage(self, usage: TokenUsage) -> None:
        self._usage += usage
        window = self._parts.settings.context_window
        self._transcript.usage(usage, self._usage, window)
        self._emit(events.UsageReported(usage, self._usage, window))

    def _record(self, item: ResponseItem) -> None:
        self._transcript.item(item)
        self._emit(events.ItemRecorded(item))

    def _emit(self, event: events.Event) -> None:
        event = self._secrets.without_in(event)
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:
                # A front end that cannot draw must not take the conversation with it.
                self._listeners.remove(listener)
                self._parts.report_crash(error)

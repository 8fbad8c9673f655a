"""The turns of a session: what the model is sent and answers, recorded and sent to the listeners."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from codex_py.context.host_messages import turn_aborted
from codex_py.core.compaction import Compaction, CompactionServices
from codex_py.core.context_tracker import ContextTracker, KnownContext
from codex_py.core.fallback import ModelFallback
from codex_py.core.history import History
from codex_py.core.listeners import Listeners, Questions
from codex_py.core.ports import AgentSpawner, HookSession, PromptRefused
from codex_py.core.sampling import Sampler, SampleResult, ToolCrash
from codex_py.core.secrets import Secrets
from codex_py.core.session_services import SessionServices, started_event
from codex_py.core.skill_options import SkillOptionsInForce
from codex_py.core.skill_requests import SkillRequests
from codex_py.core.token_usage import SpendingLog, measure_context
from codex_py.core.tool_runs import ToolRuns
from codex_py.core.transcript import Transcript
from codex_py.core.turn import PlanReader, Turn
from codex_py.core.turn_context import (
    CurrentSettings,
    ModelSettings,
    PendingInput,
    PendingMessage,
    TurnContext,
    TurnSettings,
    texts_of,
)
from codex_py.errors import CodexError, ModelError
from codex_py.model.client import TurnState
from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import UserInput
from codex_py.protocol.readable import without_plan_tags
from codex_py.protocol.status import ContextUse
from codex_py.protocol.usage import CompactionReason, TokenUsage
from codex_py.rollout.format import StoredSession
from codex_py.text.tokens import counted_bytes


class TurnRunner:
    """Runs the turns it is asked for; the session holds `lock` meanwhile, so that there is one at a time.

    Input that arrives during a turn waits in `pending`; `turn` is the one that began last.
    """

    def __init__(
        self,
        services: SessionServices,
        *,
        secrets: Secrets,
        listeners: Listeners,
        questions: Questions,
        agents: Callable[[], AgentSpawner],
    ) -> None:
        self.services: Final = services
        self.secrets: Final = secrets
        self.listeners: Final = listeners
        self.questions: Final = questions
        self.lock: Final = asyncio.Lock()
        self._emit = listeners.emit
        self.runs = ToolRuns(
            services.tools,
            secrets,
            questions,
            emit=self._emit_of_tool,
            agents=agents,
            skills=lambda: self._skill_requests,
        )
        self.settings = CurrentSettings(services.settings, services.override, self.runs.offer)
        self.pending = PendingInput()
        self.turn: TurnContext | None = None
        self._previous: ModelSettings | None = services.previous
        self._unheard: list[ResponseItem] = []
        self._running: asyncio.Task[str | None] | None = None
        self._interrupted = self.has_begun = False
        self._warnings = list(services.warnings)
        self._transcript = Transcript(services.open_recorder(self._warn), secrets.redact_bytes)
        self.spending = SpendingLog(services, self._transcript, self._emit, self.settings)
        self.rollout: Final = self._transcript.path  # None where nothing is stored
        self.history = History(self._record)
        self.context_tracker = ContextTracker(self._known_context, self._transcript, listeners.warn_once, self.runs)
        self._hooks = services.tools.hooks
        hook_session = HookSession(self.settings, self.pending, listeners, secrets, self._transcript)
        self._hooks.attach(hook_session, services.tools.checkpoints)
        self._fallback = ModelFallback(services, self.settings, self.runs, self._transcript, self._warn)
        self.compaction = Compaction(self._compaction_services())
        listeners.add(self.compaction.note_event)
        listeners.add(services.skills.ledger.note_event)
        self._skill_requests = SkillRequests(
            options=SkillOptionsInForce(services, self.settings, self._fallback, listeners.warn_once),
            services=services,
            history=self.history,
            compaction=self.compaction,
            secrets=secrets,
            questions=questions,
            listeners=listeners,
            runs=self.runs,
            add_item=self.add_item,
        )
        parent = services.parent_session
        if services.stored is not None:
            self._restore(services.stored)
        elif parent is not None and parent.snapshot is not None:
            self.context_tracker.inherit(parent.snapshot)
            self.history.append(*parent.history)

    def begin(self) -> None:
        """Emit the settings and the warnings of the session, once."""
        if self.has_begun:
            return
        self.has_begun = True
        self._emit(started_event(self.services, self.settings.next, len(self.history.items)))
        for warning in self._warnings:
            self.listeners.warn(warning)

    def _warn(self, message: str) -> None:
        """Warn; before the session has begun, with its other warnings."""
        (self.listeners.warn if self.has_begun else self._warnings.append)(message)

    def interrupt(self, *, coming: bool) -> None:
        """Stop the running turn; where none runs, the next one, if it is `coming`."""
        if self._running is not None:
            self._running.cancel()
        self._interrupted = self._running is not None or coming

    def close(self) -> None:
        """Close the rollout."""
        self._transcript.close()

    async def user_turn(
        self, waiting: Sequence[PendingMessage], output_schema: bytes | None = None, *, was_steered: bool = False
    ) -> None:
        """A turn about messages of the user; `was_steered` says that they were meant for the turn before."""
        turn = self._begin_turn(texts := tuple(text for new in waiting for text in texts_of(new.input)), output_schema)
        if was_steered:
            self._emit(events.Steered(turn.turn_id, texts, new_turn=True))
        coming = sum(counted_bytes(message.message.encoded) for message in waiting if message.message is not None)
        due = self.compaction.due_before_turn(turn.settings, coming, self._previous)
        if due is None:
            self._send_context(turn)
        await self._within(turn, self._work(turn, waiting, due))

    async def compact(self, focus: str) -> None:
        """Run a turn that only compacts the history."""
        if not len(self.history):
            self.begin()
            self.listeners.warn("there is nothing to compact yet")
            return
        turn = self._begin_turn((f"/compact {focus}".strip(),))
        await self._within(turn, self.compaction.compact(turn, "user_requested", focus=focus))

    def append(self, items: Sequence[ResponseItem]) -> None:
        """Append items while no turn runs; changes of the context are appended before them."""
        if items:
            self._take_settings()
            self.context_tracker.send_changes(lambda changes: self.history.append(*changes))
            self.history.append(*items)

    def add_item(self, item: ResponseItem) -> None:
        """Put an item before the model with its next request, which this does not cause."""
        if self.lock.locked():
            self.pending.add(item)
        else:
            self.append([item])

    def context_use(self, tokens: int | None = None) -> ContextUse:
        """The size of the next request, by kind of content; `tokens` is the provider's count of the whole."""
        is_idle = self._running is None
        model = (self._take_settings() if is_idle else self.settings.now).model
        coming = self.context_tracker.pending_items() if is_idle else ()
        specs, counted = self.runs.registry.encoded_specs, self.compaction.counted(model, tokens)
        return measure_context((*self.history.items, *coming), model, specs, counted=counted)

    def _restore(self, stored: StoredSession) -> None:
        self.history.load(stored.items, window=stored.window, pending_outputs=stored.pending_outputs)
        self.context_tracker.restore(stored.world_state)
        self.runs.shown = list(map(str, as_list((stored.world_state or {}).get("tools"))))
        self.spending.restore(stored)
        self.services.skills.ledger.resume((stored.turn_context or {}).get("turn_id"))
        self.compaction.restore(stored.last_usage, stored.covered, stored.work_state)
        self._unheard += stored.unheard

    def _take_settings(self) -> TurnSettings:
        """Let the user's settings hold, and look at the skills again."""
        settings = self.settings.take()
        skills = self.services.skills
        for warning in (*skills.refresh(settings.cwd, settings.model.known_window), *skills.take_changes()):
            self.listeners.warn_once(warning)
        return settings

    def _begin_turn(self, prompt: tuple[str, ...], output_schema: bytes | None = None) -> TurnContext:
        self.begin()
        parent_session = self.services.parent_session
        self._skill_requests.options.begin_turn()
        turn = self._take_settings().turn(self.services.thread_id, uuid7(), output_schema)
        self.turn = turn = turn.replace(parent=parent_session and parent_session.parent())
        self.runs.new_turn(turn)
        self.compaction.begin_turn()
        self._hooks.begin_turn(turn.turn_id)
        self.spending.begin_turn(turn.turn_id)
        self._emit(events.TurnStarted(turn.turn_id, prompt))
        self._transcript.turn_started(turn)
        # An earlier run may have died between a call and its output.
        self.history.close_open_calls()
        while self._unheard:
            self._keep(self._unheard.pop(0))
        return turn

    async def _work(self, turn: TurnContext, new: Sequence[PendingMessage], due: CompactionReason | None) -> str | None:
        """From the skills the user named to the model's last word. `due` says why the history is compacted first."""
        opening = await self._hooks.runner.open_session()
        if due is None:
            self.history.append(*opening)
        new = await self._hooks.runner.admit(new)
        if due is not None:
            await self._compact_first(turn, due, new)
            self.history.append(*opening)
        self._previous = turn.settings
        await self._append_messages(new)
        mcp = self.services.mcp.clients
        if await mcp.meet():
            self.runs.join()
        mcp.begin()
        return await self.runs.report_after(self._sample(turn))

    async def _compact_first(self, turn: TurnContext, due: CompactionReason, waiting: Sequence[PendingMessage]) -> None:
        """Make room for the user's messages, which are kept when that fails, is interrupted or killed."""
        for message in waiting:
            if message.message is not None:
                self._transcript.early_message(message.message)
        try:
            await self.compaction.ease(turn, due, previous=self._previous if due == "smaller_window" else None)
        except (ModelError, asyncio.CancelledError):
            self._send_context(turn)
            for message in waiting:
                self._keep(message.message, message.input)
            raise
        self._send_context(turn)

    def _keep(self, message: ResponseItem | None, inputs: Sequence[UserInput] = ()) -> None:
        """Append the user's message; None when the input was only a skill."""
        if message is not None:
            self.history.append(message)
            self._transcript.user_message(message, inputs)

    async def _append_messages(self, waiting: Sequence[PendingMessage | ResponseItem]) -> None:
        """Append messages of the user, skills before the message that names them.

        Values that skills need are asked for first. The messages are kept even if no answer comes.
        """
        left = list(waiting)
        try:
            while left:
                item = left[0]
                if isinstance(item, PendingMessage):
                    await self._skill_requests.inject(item.input)
                self._append_message(left.pop(0))
        finally:
            for item in left:
                self._append_message(item)

    def _append_message(self, item: PendingMessage | ResponseItem) -> None:
        if isinstance(item, ResponseItem):
            self.history.append(item)
        else:
            self._keep(item.message, item.input)
            self.history.append(*item.context)

    async def _append_pending(self, turn: TurnContext) -> None:
        """Append the input that has arrived since the last request."""
        waiting = self.pending.take()
        for item in waiting:
            if isinstance(item, PendingMessage):
                self._emit(events.Steered(turn.turn_id, texts_of(item.input)))
        await self._append_messages([*await self._hooks.runner.admit_pending(waiting), *self.runs.take_ended()])

    def _send_context(self, turn: TurnContext) -> None:
        """Append the context that the model has not been sent yet."""
        self.context_tracker.send_changes(lambda items: self.history.append(*items))
        self._transcript.turn_settings(turn)

    def _known_context(self) -> KnownContext:
        return self.services.snapshot(self.services.skills.instructions(), self.settings.now)

    def _compaction_services(self) -> CompactionServices:
        return CompactionServices(
            history=self.history,
            model=self.services.model,
            transcript=self._transcript,
            context_tracker=self.context_tracker,
            tools=lambda: self.runs.registry.encoded_specs,
            emit=self._emit,
            note_cost=lambda request, left: self.spending.note(request, TokenUsage(total_tokens=left)),
            cwd=self.services.settings.cwd,
            skill_uses=self.services.skills.uses_in,
            prompt_text=self.services.compact_prompt,
            summary_turn=self._fallback.compaction_turn,
            hooks=self._hooks,
        )

    async def _sample(self, turn: TurnContext) -> str | None:
        sampler = Sampler(
            turn=turn,
            history=self.history,
            model=self.services.model,
            tools=self.context_tracker.tools_to_show,
            count_tokens=lambda: self.compaction.counted(turn.settings).total,
            run_tool=lambda call, ended: self.runs.run(call, turn, ended),
            keep_output=self._transcript.early_output,
            emit=PlanReader(turn.turn_id, self._emit) if turn.plan else self._emit,
            expect_call=lambda: self.runs.warm_up(turn.sandbox_policy, turn.cwd),
            saved=self._transcript.saved,
            turn_state=TurnState(),
        )
        return await Turn(
            sampler,
            self._skill_requests.options.fall_back,
            self._note_answer,
            self.compaction,
            append_pending=lambda: self._append_pending(turn),
            has_pending_message=lambda: self.pending.wants_answer,
            hooks=self._hooks,
            next_sampler=self._skill_requests.options.next_sampler,
        ).run()

    async def _within(self, turn: TurnContext, work: Coroutine[Any, Any, str | None]) -> None:
        """Run the work of a turn; its outcome is recorded and emitted."""
        self._running = asyncio.create_task(work)
        if self._interrupted:
            self._running.cancel()
        try:
            with self.spending.time_limit(self._running):
                last = await self.services.tools.checkpoints.finish_turn(turn, self._running, self._emit)
        except ModelError as error:
            self._fail(turn, str(error), error.code, error.failure)
        except PromptRefused as error:
            self._fail(turn, str(error), "prompt_refused", "refused")
        except ToolCrash as error:
            self._fail(turn, self.services.report_crash(error.__cause__ or error))
        except asyncio.CancelledError:
            if not self._running.cancelled():
                # Not an interrupt: whoever runs this session is being stopped.
                self._running.cancel()
                with contextlib.suppress(asyncio.CancelledError, CodexError, ToolCrash):
                    await self._running
                self._note_interrupt(turn)
                raise
            self._note_interrupt(turn)
        else:
            self._transcript.turn_completed(turn, last)
            await self._transcript.saved()
            last = without_plan_tags(last) if turn.plan and last is not None else last
            self._emit(self.spending.completed(turn.turn_id, last))
        finally:
            self._running, self._interrupted = None, False

    def _fail(self, turn: TurnContext, message: str, code: str = "", failure: str = "") -> None:
        message = self.secrets.redact(message)
        self.history.close_open_calls()
        self._transcript.turn_failed(turn, message)
        self._emit(events.TurnFailed(turn.turn_id, message, code, failure))

    def _note_interrupt(self, turn: TurnContext) -> None:
        if (over := self.spending.ended_by_time()) is not None:
            self._fail(turn, str(over), over.code, "budget")
            return
        self.history.close_open_calls()
        if self.services.reports_interrupts:
            self.history.append(turn_aborted())
        self._transcript.turn_interrupted(turn)
        self._emit(events.TurnInterrupted(turn.turn_id))

    def _emit_of_tool(self, event: events.Event) -> None:
        if isinstance(event, events.Warned):
            self.listeners.warned_once(event)
            return
        for emitted in (event, *self._skill_requests.uses_in(event)):
            self._emit(emitted)

    def _note_answer(self, answer: SampleResult) -> None:
        if answer.failure is None:
            self.compaction.note_response(answer.usage, answer.covered, self.settings.now.model)
        if answer.cost is not None:
            left = self.compaction.counted(self.settings.now.model).total
            self.spending.note(answer.cost, answer.usage or TokenUsage(total_tokens=left))

    def _record(self, item: ResponseItem) -> None:
        clean = self.secrets.without_in_item(item)
        self._transcript.item(clean)
        self._emit(events.ItemRecorded(clean))

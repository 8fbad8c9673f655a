"""A session: the entry point to one conversation. It runs one turn at a time and queues further input."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from codex_py.core.answer_schema import check_schema
from codex_py.core.conversation import TurnRunner
from codex_py.core.listeners import Listener, Listeners, Questions
from codex_py.core.ports import AgentSpawner, McpClients, NoAgents, SessionAccess
from codex_py.core.secrets import Secrets, SecretStore
from codex_py.core.session_services import SessionServices
from codex_py.core.session_skills import SessionSkills
from codex_py.core.side_question import SideQuestions, prompt_of
from codex_py.core.token_usage import budget_question, count_request
from codex_py.core.turn import plan_accepted
from codex_py.core.turn_context import PendingMessage, TurnContext, TurnSettings, build_user_message
from codex_py.core.work_log import SessionNotes
from codex_py.errors import ModelError
from codex_py.model.client import ModelClient
from codex_py.protocol import events, ops
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import TextInput, UserInput
from codex_py.protocol.status import ContextUse, LiveProcess

_COUNT_SECONDS: Final = 5.0


class Session:
    """One conversation with the model. A front end submits ops and listens to events.

    `agents` are those it has started, `hooks` its hooks. `warn` emits a warning; `stop_commands` ends all commands that
    still run; `plan` gives the model's plan; `rollout` is its file, if any; `side` answers questions beside it.
    """

    def __init__(
        self, services: SessionServices, make_agents: Callable[[TurnRunner], AgentSpawner] | None = None
    ) -> None:
        self._services = services
        self._make_agents = make_agents
        self.agents: AgentSpawner = NoAgents()
        parent_session = services.parent_session
        secrets = Secrets(SecretStore(services.redactor) if parent_session is None else parent_session.secret_store)
        self._listeners = Listeners(secrets, services.report_crash)
        self._questions = Questions(self._listeners.emit, parent_session and parent_session.ask)
        self._conversation = TurnRunner(
            services,
            secrets=secrets,
            listeners=self._listeners,
            questions=self._questions,
            agents=self.load_agents,
        )
        self._turn_lock = self._conversation.lock
        self._runs = self._conversation.runs
        self._settings = self._conversation.settings
        self._pending = self._conversation.pending
        self.history = self._conversation.history
        self.spending: Final = self._conversation.spending
        self.thread_id: Final = services.thread_id
        self.warn: Final = self._listeners.warn
        self.hooks: Final = services.tools.hooks
        self.stop_commands: Final = self._runs.stop_all
        self.plan: Final = self._conversation.compaction.plan
        self.rollout: Final = self._conversation.rollout
        if parent_session is None:
            services.model.watch(add_secrets=secrets.add_secrets, warn=self._listeners.warn_once)
            access = SessionAccess(
                ask=self._questions.ask,
                warn=self._listeners.warn_once,
                add_secrets=secrets.add_secrets,
                settings=lambda: self._settings.now,
            )
            services.mcp.attach(access)
            services.tools.checkpoints.attach(self._listeners.warn_once)
            if services.tools.can_ask:
                services.model.meter.ask = budget_question(self._questions.ask)
            self._runs.join()
        self.side: Final = SideQuestions(self._conversation)
        self._notes = SessionNotes()
        self.subscribe(self._notes.note_event)

    @property
    def settings(self) -> TurnSettings:
        """The settings for the next turn."""
        return self._settings.next

    @property
    def skills(self) -> SessionSkills:
        """The skills of the session."""
        return self._services.skills

    @property
    def mcp(self) -> McpClients:
        """The MCP servers of the session, whose prompts are commands."""
        return self._services.mcp.clients

    @property
    def last_message(self) -> str | None:
        """The last message of the model; None where there is none."""
        return self._notes.last_message_in(self.history.items)

    def files_changed(self) -> tuple[events.FileChange, ...]:
        """The files that patches of this session wrote, each once, the one written last at the end.

        `diff` is all that was done to it, one diff after the other; what an earlier run has done has none.
        """
        return self._notes.changes_of(self._conversation.compaction.files_edited())

    def context_use(self) -> ContextUse:
        """The size of the next request, by kind of content."""
        return self._conversation.context_use()

    async def count_context(self) -> ContextUse:
        """The same, with the provider's token count if it offers one. Waits a few seconds for it at most.

        Before the provider has counted anything, the model's tokenizer counts, where it is known.
        """
        runner = self._conversation
        coming = () if runner.lock.locked() else runner.context_tracker.pending_items()
        turn = runner.settings.now.turn(runner.services.thread_id, "")
        tools = runner.runs.registry.encoded_specs
        items = (*runner.history.items_answered(), *coming)
        tokens = await _count_tokens(runner.services.model, turn, items, tools)
        if tokens is None and not runner.context_use().measured:
            tokens = await asyncio.to_thread(count_request, items, turn.settings, tools)
        return runner.context_use(tokens)

    def load_agents(self) -> AgentSpawner:
        """`agents`, with those of earlier runs; what starts agents is made at the first call."""
        if self._make_agents is not None:
            self.agents = self._make_agents(self._conversation)
            self._make_agents = None
        return self.agents

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands that still run, the oldest first; behind the session's own those of its agents."""
        return (*self._runs.processes(), *self.agents.processes())

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command with all it started; False when none with this id runs. The model is sent its exit code."""
        return await self._runs.stop_process(process_id) or await self.agents.stop_process(process_id)

    def take_back(self) -> tuple[UserInput, ...]:
        """Withdraw steered input that has not reached the model; it will not be sent."""
        return tuple(item for message in self._pending.take_messages() for item in message.input)

    def subscribe(self, listener: Listener) -> None:
        """Send every event to a listener from now on, in order, on the loop's thread."""
        self._listeners.add(listener)

    async def submit(self, op: ops.Op) -> None:
        """Carry out an op. A turn is over when this returns, and never raises for what went wrong within it.

        A turn that is asked for while another one runs begins after it. Raises `UserError` for an input that cannot be
        read and for settings that cannot be, before anything has begun.
        """
        match op:
            case ops.UserTurn(inputs, schema):
                await self._run_alone(lambda: self._user_turn(inputs, schema))
            case ops.Steer(inputs):
                await self._steer(inputs)
            case ops.UserShell(command):
                await self._user_shell(command)
            case ops.AcceptPlan(request):
                await self._accept_plan(request)
            case ops.Begin():
                self._begin()
            case ops.Compact(focus):
                await self._run_alone(lambda: self._conversation.compact(focus))
            case ops.OverrideTurnContext():
                self._override(op)
            case ops.ReloadSkills():
                self._services.skills.reload()
            case ops.Interrupt():
                self.interrupt()
            case ops.StopWork():
                await self._stop_work()
            case ops.AnswerQuestion(question_id, value):
                self._questions.answer(question_id, value)

    def _begin(self) -> None:
        self._conversation.begin()
        settings = self.settings
        # A turn would warn too, when it may be too late to correct it.
        for warning in self._services.skills.refresh(settings.cwd, settings.model.known_window):
            self._listeners.warn_once(warning)
        # While the first message is typed: a broken server is reported before it is needed.
        self._services.mcp.clients.begin()

    def interrupt(self) -> None:
        """Stop the running turn, or the one that is about to start, and the user's own commands; returns at once.

        What was steered and has not reached the model begins the next turn, unless it is taken back. A session that is
        being closed waits for hooks no longer.
        """
        self.agents.interrupt()
        stopped = self._runs.stop_user_shells()
        coming = self._turn_lock.locked() or not (stopped or self._conversation.has_begun)
        self._conversation.interrupt(coming=coming)
        self.hooks.runner.stop_waiting()

    async def _stop_work(self) -> None:
        """Stop the turn, the agents and every command; returns when nothing of them runs any more."""
        if self._turn_lock.locked():
            self.interrupt()
        self._runs.stop_user_shells()
        for process in self.processes():
            await self.stop_process(process.id)
        async with self._turn_lock:
            pass

    async def close(self) -> None:
        """Stop every process, close the connection and the rollout. Safe to call more than once."""
        await self.agents.shut_down()
        await self.hooks.runner.close()
        if self._services.parent_session is None:
            await self._services.mcp.clients.close()
        await self._runs.close()
        if self._services.parent_session is None:
            await self._services.model.aclose()
        self._conversation.close()
        if finder := self._services.skills.finder:
            await asyncio.to_thread(finder.close)

    async def _run_alone(self, turn: Callable[[], Awaitable[None]]) -> None:
        """Run a turn when no other one runs; input that came too late for it begins another turn."""
        async with self._turn_lock:
            try:
                await turn()
                while waiting := self._pending.take_messages():
                    await self._conversation.user_turn(waiting, was_steered=True)
            finally:
                # Nothing runs any more: what was to be stopped before it had begun is not the next turn.
                self._conversation.interrupt(coming=False)
                self._conversation.append(self._pending.take_items())

    async def _user_turn(self, inputs: tuple[UserInput, ...], schema: dict[str, Any] | None = None) -> None:
        if schema is not None:
            check_schema(schema)
        message = await build_user_message(inputs, cwd=self._settings.next.cwd)
        await self._conversation.user_turn(
            [PendingMessage(inputs, message)], None if schema is None else encode_json(schema)
        )

    async def _steer(self, inputs: tuple[UserInput, ...]) -> None:
        message = PendingMessage(inputs, await build_user_message(inputs, cwd=self._settings.now.cwd))
        if self._turn_lock.locked():
            self._pending.add(message)
        else:
            await self._run_alone(lambda: self._conversation.user_turn([message], was_steered=True))

    async def _user_shell(self, command: str) -> None:
        self._conversation.begin()
        self._conversation.add_item(await self._runs.user_shell(command, self._settings.next))

    async def _accept_plan(self, request: str) -> None:
        self._override(ops.OverrideTurnContext(plan=False))
        await self._run_alone(lambda: self._user_turn((TextInput(plan_accepted(request)),)))

    def _override(self, op: ops.OverrideTurnContext) -> None:
        if changed := self._settings.change(op):
            self._listeners.emit(changed)
            if op.plan and (names := [agent.name for agent in self.agents.states() if agent.is_at_work]):
                self._listeners.warn(f"plan mode is not for agents that are at work already: {', '.join(names)}")


async def _count_tokens(
    model: ModelClient, turn: TurnContext, items: Sequence[ResponseItem], tools: bytes
) -> int | None:
    """The provider's token count of a request; None if it offers none or does not answer in time."""
    prompt = prompt_of(turn, [item.encoded for item in items], tools)
    try:
        async with asyncio.timeout(_COUNT_SECONDS):
            return await model.count_tokens(prompt)
    except (ModelError, TimeoutError):
        return None

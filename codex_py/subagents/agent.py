"""One agent: its session, its work in the background, and the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.core.conversation import TurnRunner
from codex_py.core.ports import AgentSpawner
from codex_py.core.session import Session
from codex_py.core.session_services import ParentSession, SessionServices
from codex_py.core.turn_context import texts_of
from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.ops import Steer, UserInput, UserTurn
from codex_py.protocol.questions import Question, QuestionAnswer
from codex_py.protocol.status import AgentState, AgentStatus
from codex_py.text.display import first_words

_ACTIVITY: Final = 120


class SubagentSession:
    """A session that works in the background. `notify` is called for every change, with the status before it.

    `is_heard` says that the model knows of the last outcome, or need not; `awaited` counts the calls that wait for it.
    """

    def __init__(
        self,
        state: AgentState,
        services: SessionServices,
        parent: ParentSession,
        *,
        make_agents: Callable[[TurnRunner], AgentSpawner],
        notify: Callable[[SubagentSession, AgentStatus | None], None],
    ) -> None:
        self.state = state
        self.is_heard = True
        self.awaited = 0
        self._parent = parent
        self._report_crash = services.report_crash
        self._notify = notify
        self._tasks: set[asyncio.Task[None]] = set()
        self._outcome: tuple[AgentStatus, str | None] = ("completed", None)
        self._last_status: AgentStatus | None = None
        self._ended = asyncio.Event()
        self._ended.set()
        parent_session = parent.replace(ask=self._ask)
        self.session: Final = Session(services.replace(parent_session=parent_session), make_agents)
        self.session.subscribe(self._note_event)

    @property
    def is_at_work(self) -> bool:
        return bool(self._tasks)

    def begin(self, inputs: tuple[UserInput, ...]) -> None:
        """Work on something, after what it does already: that is its task from now on."""
        self.state = self.state.replace(task="\n".join(texts_of(inputs)) or self.state.task)
        self._start(self.session.submit(UserTurn(inputs)))

    def steer(self, inputs: tuple[UserInput, ...]) -> None:
        """Send it a message without interrupting its work."""
        self._start(self.session.submit(Steer(inputs)))

    def interrupt(self) -> None:
        """Stop what it and its own agents do; returns at once. Its commands are stopped before it counts as ended.

        One that is being closed waits for hooks no longer.
        """
        if not self.is_at_work:
            self.session.agents.interrupt()
            self.session.hooks.runner.stop_waiting()
        self._stop()

    async def ended(self) -> None:
        """Return when it is no longer at work."""
        await self._ended.wait()

    async def close(self, status: AgentStatus | None = None) -> None:
        """Stop it and let go of its session; `status` is its new status, where that is reported."""
        self._last_status = status
        self._stop()
        while self._tasks:
            await asyncio.wait(self._tasks)
        await self.session.close()
        if status is not None:
            self.change(status=status)

    def change(self, **changes: Any) -> None:
        """Change its state, and report that."""
        before = self.state
        self.state = before.replace(**changes)
        if self.state != before:
            self._notify(self, before.status)

    async def _ask(self, question: Question) -> QuestionAnswer | None:
        self.change(is_waiting=True)
        try:
            return await self._parent.ask(question if question.agent else question.replace(agent=self.state.name))
        finally:
            self.change(is_waiting=False)

    def _stop(self) -> None:
        if self.is_at_work:
            self.session.interrupt()
        else:
            self._start(self.session.stop_commands(), is_work=False)

    def _start(self, work: Coroutine[Any, Any, None], *, is_work: bool = True) -> None:
        task = asyncio.create_task(self._run_work(work) if is_work else work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)
        if is_work:
            self._ended.clear()
            self.is_heard = False
            self.change(status="running", message=None)

    async def _run_work(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except UserError as error:
            self._outcome = ("errored", str(error))
        if self._outcome[0] == "interrupted":
            await self.session.stop_commands()

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if task.cancelled():
            self._outcome = ("interrupted", None)
        elif error is not None:
            self._outcome = ("errored", self._report_crash(error))
        if not self._tasks and not self._ended.is_set():
            self._ended.set()
            status, message = self._outcome
            self.change(status=self._last_status or status, message=message, activity="", is_waiting=False)

    def _note_event(self, event: events.Event) -> None:
        match event:
            case events.TurnCompleted(_, message):
                self._outcome = ("completed", message)
            case events.TurnFailed(_, message):
                self._outcome = ("errored", message)
            case events.TurnInterrupted():
                self._outcome = ("interrupted", None)
            case events.UsageReported(_, total, costs=costs):
                self.change(tokens=total.total_tokens, cost=costs.session.in_words())
            case _:
                if (activity := _activity_of(event)) is not None:
                    self.change(activity=activity)


async def first_end(agents: Sequence[SubagentSession], seconds: float) -> None:
    """Return when the first agent is no longer at work, or after `seconds`. Meanwhile all count as awaited."""
    for agent in agents:
        agent.awaited += 1
    waits = [asyncio.create_task(agent.ended()) for agent in agents]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for agent in agents:
            agent.awaited -= 1
        for wait in waits:
            wait.cancel()


def _activity_of(event: events.Event) -> str | None:
    """The agent's current activity according to an event; None when the event has none."""
    match event:
        case events.CommandStarted(_, command):
            return first_words(command, _ACTIVITY)
        case events.McpCallStarted(_, server, tool):
            return first_words(f"{server}.{tool}", _ACTIVITY)
        case events.PatchStarted(_, changes):
            return first_words(f"patching {', '.join(Path(change.path).name for change in changes)}", _ACTIVITY)
        case events.AgentCallStarted(_, tool):
            return f"agents: {tool}"
        case events.CompactionStarted():
            return "compacting its context"
        case events.Retrying(message):
            return first_words(message, _ACTIVITY)
        case events.CommandFinished() | events.McpCallFinished() | events.PatchFinished() | events.AgentCallFinished():
            return ""
        case _:
            return None

"""The turns of a session: messages sent, queued or steered, the question about a plan, and side tasks."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, Literal, TypeAlias

from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.ops import AcceptPlan, Op, Steer, UserShell, UserTurn
from codex_py.render.message import render_prompt
from codex_py.render.questions import CARRY_OUT, CARRY_OUT_NO, CARRY_OUT_YES
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.panels.forms import Form, FormAsker, Option, Sheet
from codex_py.ui.repl.slash_command import OutputSink


class MessageQueue:
    """Takes messages one by one. A message typed during a turn waits for its end, unless it steers.

    `tasks` owns the running work; `changed` is called when something is to be drawn again.
    """

    def __init__(
        self, session: Session, output: OutputSink, live: Live, *, tasks: asyncio.TaskGroup, changed: Callable[[], None]
    ) -> None:
        self._session = session
        self._output = output
        self._live = live
        self._tasks = tasks
        self._changed = changed
        live.go_on_with(session.plan())
        self._turn: asyncio.Task[None] | None = None
        self._shells: set[asyncio.Task[None]] = set()
        self._begun_with: Composed | None = None
        self.queue: deque[Composed] = deque()
        self.steered: list[Composed] = []

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs."""
        return self._turn is not None and not self._turn.done()

    @property
    def can_be_stopped(self) -> bool:
        return self.is_busy or bool(self._shells) or bool(self._live.agents)

    def send(self, message: Composed) -> None:
        """Begin a turn with a message, or queue it behind the one that runs."""
        if self.is_busy:
            self.queue.append(message)
        else:
            self._begin_with(message)
        self._changed()

    def steer(self, message: Composed) -> None:
        """Send a message to the running turn."""
        if not self.is_busy:
            self.send(message)
            return
        self.steered.append(message)
        self._tasks.create_task(self._submit(Steer(message.submitted())))
        self._changed()

    def shell(self, command: str) -> None:
        """Run a command as the user."""
        task = self._tasks.create_task(self._submit(UserShell(command)))
        self._shells.add(task)
        task.add_done_callback(self._shells.discard)

    def begin(self, op: Op) -> None:
        """Begin a turn of whatever kind."""
        self._turn = self._tasks.create_task(self._submit(op))
        self._turn.add_done_callback(self._go_on)
        self._live.begin()

    def interrupt(self) -> list[Composed]:
        """Stop the turn and the user's own commands; gives back what was queued, which is not sent."""
        waiting = [*self.steered, *self.queue]
        self.queue.clear()
        self.steered.clear()
        self._session.take_back()
        self._session.interrupt()
        return waiting

    def take_last_queued(self) -> Composed | None:
        """The message queued last, to be changed."""
        return self.queue.pop() if self.queue else None

    def note_event(self, event: events.Event) -> None:
        """A listener of the session."""
        match event:
            case events.TurnStarted(_, (text,)) if self._begun_with and self._begun_with.text == text:
                # As it was typed: a large paste stays folded.
                self._output.show(render_prompt(self._begun_with.typed))
            case events.Steered(_, messages):
                self.steered = [message for message in self.steered if message.text not in messages]
                self._live.finish_text()
                self._output.event(event)
            case _:
                self._live.note_event(event)

    def _begin_with(self, message: Composed) -> None:
        self._begun_with = message
        self.begin(UserTurn(message.submitted()))

    async def _submit(self, op: Op) -> None:
        try:
            await self._session.submit(op)
        except UserError as error:
            self._output.fail(str(error), hint=error.hint)

    def _go_on(self, ended: asyncio.Task[Any]) -> None:
        self._live.end()
        if self.queue and not ended.cancelled():
            self._begin_with(self.queue.popleft())
        self._changed()


class SideTasks:
    """Tasks of a group that are not waited for when the session is left."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop all of it."""
        for task in tuple(self._tasks):
            task.cancel()


_Verdict: TypeAlias = Literal["yes", "with", "no"]

_SHEET: Final[Sheet[_Verdict]] = Sheet(
    title=CARRY_OUT,
    subject=(),
    options=(
        Option("y", CARRY_OUT_YES, "yes"),
        Option("w", "Yes, with changes…", "with"),
        Option("n", CARRY_OUT_NO, "no"),
    ),
    refusal="no",
    default=2,
)


class PlanKeeper:
    """A listener of a session that asks about its plans; `begin` starts the turn that carries one out.

    `is_typing` says whether the user is in the middle of a text when the question comes up, `has_more` whether they
    have already sent more about the plan: then there is no question.
    """

    def __init__(
        self,
        asker: FormAsker,
        begin: Callable[[AcceptPlan], None],
        tasks: SideTasks,
        *,
        is_typing: Callable[[], bool],
        has_more: Callable[[], bool],
    ) -> None:
        self._asker = asker
        self._is_typing = is_typing
        self._has_more = has_more
        self._begin = begin
        self._tasks = tasks
        self._is_proposed = False

    def note_event(self, event: events.Event) -> None:
        """Ask when the turn that made the plan is over."""
        match event:
            case events.PlanProposed():
                self._is_proposed = True
            case events.TurnCompleted() if self._is_proposed:
                self._is_proposed = False
                if not self._has_more():
                    self._tasks.start(self._ask())
            case events.TurnStarted():
                self._is_proposed = False
            case _:
                pass

    async def _ask(self) -> None:
        verdict = await self._asker.choose(_SHEET, armed=not self._is_typing())
        if verdict == "yes":
            self._begin(AcceptPlan())
        elif verdict == "with":
            request = await self._asker.enter(Form("What else should it do?", enter="carry it out"))
            if request is not None:
                self._begin(AcceptPlan(request))

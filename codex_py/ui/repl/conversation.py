"""The messages of one session: sends what is typed, queues it during a turn, and shows the session's events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.ops import Op, Steer, UserShell, UserTurn
from codex_py.render.message import render_prompt
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.command_context import OutputSink
from codex_py.ui.repl.live import Live


class MessageQueue:
    """Takes messages one by one. What is typed while a turn runs waits for its end, unless it steers.

    `tasks` owns what is going on; `changed` is called when something is to be drawn again.
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
        self._tasks.create_task(self._submit(Steer(message.inputs)))
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
        self.begin(UserTurn(message.inputs))

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

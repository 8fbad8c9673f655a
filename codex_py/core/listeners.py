"""Sends the events of a session to its listeners, which cannot harm it, and keeps its open questions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from codex_py.core.secrets import Secrets
from codex_py.protocol.events import Event, QuestionClosed, QuestionRaised, Warned
from codex_py.protocol.questions import AskUser, Question, QuestionAnswer

Listener: TypeAlias = Callable[[Event], None]


class Listeners:
    """Sends every event to every listener, in order, without the session's secrets."""

    def __init__(self, secrets: Secrets, report_crash: Callable[[BaseException], str]) -> None:
        self._secrets = secrets
        self._report_crash = report_crash
        self._listeners: list[Listener] = []
        self._warned: set[str] = set()

    def add(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def emit(self, event: Event) -> None:
        for redacted in self._secrets.without_in(event):
            self._notify(redacted)

    def warn(self, message: str) -> None:
        """Emit a warning; the work goes on."""
        self.emit(Warned(message))

    def warned_once(self, event: Warned) -> None:
        """Emit the warning, unless the same message was emitted by this or by `warn_once` before."""
        if event.message not in self._warned:
            self._warned.add(event.message)
            self.emit(event)

    def has_warned(self, message: str) -> bool:
        """Whether `warn_once` has sent this message."""
        return message in self._warned

    def warn_once(self, message: str) -> None:
        """`warn`, unless the same message was sent before."""
        self.warned_once(Warned(message))

    def _notify(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(event)
            except Exception as error:
                # A front end that cannot draw must not take the conversation with it.
                self._listeners.remove(listener)
                self._report_crash(error)


class Questions:
    """The open questions of a session, in memory only. With `relay` another session asks them."""

    def __init__(self, emit: Callable[[Event], None], relay: AskUser | None = None) -> None:
        self._emit = emit
        self._relay = relay
        self._open: dict[str, asyncio.Future[QuestionAnswer | None]] = {}

    async def ask(self, question: Question) -> QuestionAnswer | None:
        """Wait for the user's answer; None when they gave none. Cancelling takes the question back."""
        if self._relay is not None:
            return await self._relay(question)
        answer: asyncio.Future[QuestionAnswer | None] = asyncio.get_running_loop().create_future()
        self._open[question.id] = answer
        try:
            self._emit(QuestionRaised(question))
            return await answer
        finally:
            del self._open[question.id]
            self._emit(QuestionClosed(question.id))

    def answer(self, question_id: str, value: QuestionAnswer | None) -> None:
        """Pass an answer on; one to a question that is not open is dropped."""
        waiting = self._open.get(question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(value)

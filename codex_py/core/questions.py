"""Open questions: each is emitted as an event and waits for the op that answers it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from codex_py.protocol.events import Event, QuestionClosed, QuestionRaised
from codex_py.protocol.questions import Question


class Questions:
    """The open questions of a session, in memory only. With `relay` another session asks them."""

    def __init__(
        self, emit: Callable[[Event], None], relay: Callable[[Question], Awaitable[str | None]] | None = None
    ) -> None:
        self._emit = emit
        self._relay = relay
        self._open: dict[str, asyncio.Future[str | None]] = {}

    async def ask(self, question: Question) -> str | None:
        """Wait for the user's answer; None when they gave none. Cancelling takes the question back."""
        if self._relay is not None:
            return await self._relay(question)
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._open[question.id] = answer
        try:
            self._emit(QuestionRaised(question))
            return await answer
        finally:
            del self._open[question.id]
            self._emit(QuestionClosed(question.id))

    def answer(self, question_id: str, value: str | None) -> None:
        """Pass an answer on; one to a question that is not open is dropped."""
        waiting = self._open.get(question_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(value)

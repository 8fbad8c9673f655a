"""What a session has used and what that cost: reported, written down, and ended where a budget of time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from codex_py.core.session_services import SessionServices
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import CurrentSettings
from codex_py.errors import ModelError
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import Event, TurnCompleted, UsageReported
from codex_py.protocol.questions import AskUser, ChoiceQuestion, QuestionOption
from codex_py.protocol.usage import Costs, RequestCost, TokenUsage
from codex_py.rollout.format import StoredSession

_GO_ON: Final = "Go on"
_OPTIONS: Final = (
    QuestionOption(_GO_ON, "as much again may be spent before you are asked once more"),
    QuestionOption("Stop", "the turn ends with what it has; you can go on later"),
)


class SpendingLog:
    """Adds up what one session uses; `session` and `turn` are its tokens."""

    def __init__(
        self,
        services: SessionServices,
        transcript: Transcript,
        emit: Callable[[Event], None],
        settings: CurrentSettings,
    ) -> None:
        self.session = TokenUsage()
        self.turn = TokenUsage()
        self._meter = services.model.meter
        self._thread_id = services.thread_id
        self._is_agent = services.parent_session is not None
        self._transcript = transcript
        self._emit = emit
        self._settings = settings
        self._is_overdue = False

    def restore(self, stored: StoredSession) -> None:
        """Go on from what an earlier run has used."""
        self.session = stored.usage
        if self._is_agent:
            self._meter.restore_agent(self._thread_id, stored.spending)

    def begin_turn(self, turn_id: str) -> None:
        self.turn, self._is_overdue = TokenUsage(), False
        if not self._is_agent:
            self._meter.begin_turn(turn_id)

    def note(self, request: RequestCost | None, last: TokenUsage) -> None:
        """Report an answered request; `last` is what the next one takes."""
        if request is not None:
            self.session += request.usage
            self.turn += request.usage
        report = UsageReported(last, self.session, self._settings.now.model.context_window, self.turn, self.costs())
        self._transcript.usage(report, request)
        self._emit(report)

    def costs(self) -> Costs:
        """The cost of the session and its turn so far, with their agents."""
        return self._meter.costs(self._thread_id, is_agent=self._is_agent)

    def completed(self, turn_id: str, last_message: str | None) -> TurnCompleted:
        """The event that ends a turn, with its usage and cost."""
        return TurnCompleted(turn_id, last_message, self.session, self.turn, self.costs())

    @contextmanager
    def time_limit(self, work: asyncio.Task[Any]) -> Generator[None]:
        """Cancel the work of a turn where its time is over before it ends."""
        seconds = None if self._is_agent else self._meter.seconds_left()
        if seconds is None:
            yield
            return

        def stop() -> None:
            self._is_overdue = True
            work.cancel()

        timer = asyncio.get_running_loop().call_later(seconds, stop)
        try:
            yield
        finally:
            timer.cancel()

    def ended_by_time(self) -> ModelError | None:
        """Why the turn was cancelled, where that was its time."""
        return self._meter.reached_in_time() if self._is_overdue else None


def budget_question(ask: AskUser) -> Callable[[str], Any]:
    """The function that asks the user whether to go on when a budget is used up."""

    async def may_go_on(used: str) -> bool:
        question = f"The budget is used up: {used}. Go on?"
        return await ask(ChoiceQuestion(uuid7(), "Budget", question, _OPTIONS)) == _GO_ON

    return may_go_on

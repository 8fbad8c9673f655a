"""A server's live session, where a turn or the way to an answer ends by a bug: nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.protocol import events, ops
from codex_py.protocol.ops import TextInput
from codex_py.protocol.questions import ChoiceQuestion
from codex_py.server.threads import LiveThread, Opening


class Dying:
    """A session whose turns begin, and end by an error without a word."""

    thread_id = "t1"

    def __init__(self, error: Exception) -> None:
        self.submitted: list[ops.Op] = []
        self._error = error
        self._listeners: list[Callable[[events.Event], None]] = []

    def subscribe(self, listener: Callable[[events.Event], None]) -> None:
        self._listeners.append(listener)

    def emit(self, event: events.Event) -> None:
        for listener in self._listeners:
            listener(event)

    def warn(self, message: str) -> None:
        self.emit(events.Warned(message))

    async def submit(self, op: ops.Op) -> None:
        self.submitted.append(op)
        if isinstance(op, ops.UserTurn):
            self.emit(events.TurnStarted("turn-1"))
            await asyncio.sleep(0)
            raise self._error


def live(session: Dying, directory: Path) -> tuple[LiveThread, list[events.Event]]:
    """The thread of such a session, and what it tells."""
    heard: list[events.Event] = []
    thread = LiveThread(
        cast("Session", session),
        Opening(directory),
        load_config(ConfigRequest(home=directory, cwd=directory, env={}, system=directory)),
        make_listener=lambda _: heard.append,
        env={},
        report_crash=lambda error: f"a bug: {error}",
    )
    return thread, heard


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (UserError("no such thing"), (events.TurnFailed("turn-1", "no such thing"),)),
        (KeyError("x"), (events.Warned("a bug: 'x'"), events.TurnFailed("turn-1", "a bug: 'x'"))),
    ],
)
async def test_a_turn_that_just_dies_is_reported_as_failed(
    tmp_path: Path, error: Exception, result: tuple[events.Event, ...]
) -> None:
    thread, heard = live(Dying(error), tmp_path)
    assert await thread.start_turn((TextInput("go"),)) == "turn-1"
    await thread.idle()

    assert heard == [events.TurnStarted("turn-1"), *result]
    assert thread.turn_id is None


async def test_a_question_whose_answer_cannot_be_found_is_left_unanswered(tmp_path: Path) -> None:
    session = Dying(UserError("no"))
    thread, heard = live(session, tmp_path)

    async def fail() -> None:
        raise KeyError("x")

    session.emit(events.QuestionRaised(ChoiceQuestion("q1", "Which", "A or B?", ())))
    await asyncio.wait([thread.answer_by("q1", fail())])
    await asyncio.sleep(0)
    await thread.idle()

    assert session.submitted == [ops.AnswerQuestion("q1", None)]
    assert heard[1:] == [events.Warned("a bug: 'x'")]

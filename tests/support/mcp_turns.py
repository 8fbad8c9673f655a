"""Looking at turns in which MCP servers are called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.questions import ApprovalQuestion, Question
from tests.support.fake_responses import Json
from tests.support.session import Watched


def warnings(watched: Watched) -> list[str]:
    """What the user was warned of, but for the wait for a server that was never met."""
    return [one for one in watched.warnings if not one.startswith("waiting for the MCP")]


def answers(watched: Watched, reply: Callable[[Question], str | None]) -> list[Question]:
    """Answer every question; the list fills with them."""
    seen: list[Question] = []

    def note(event: events.Event) -> None:
        if isinstance(event, events.QuestionRaised):
            seen.append(event.question)
            op = AnswerQuestion(event.question.id, reply(event.question))
            watched.tasks.append(asyncio.ensure_future(watched.session.submit(op)))

    watched.session.subscribe(note)
    return seen


def agree(question: Question) -> str:
    """The answer that lets happen what is asked about."""
    return "once" if isinstance(question, ApprovalQuestion) else "yes"


def texts(output: Any) -> list[str]:
    """The texts of an output that is a list of parts, the line with the time left out."""
    assert output[0]["text"].startswith("Wall time: ")
    return [part["text"] for part in output[1:] if part["type"] == "input_text"]


def output_parts(body: Json, call_id: str) -> Any:
    return next(one["output"] for one in body["input"] if one.get("call_id") == call_id and "output" in one)

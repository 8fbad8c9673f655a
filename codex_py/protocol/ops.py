"""Ops: everything a front end can ask of a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from codex_py.protocol.input import UserInput


@dataclass(frozen=True, slots=True)
class UserTurn:
    """Start a turn. `output_schema` is a JSON schema the last message must satisfy."""

    input: tuple[UserInput, ...]
    output_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the running turn; what was done is kept, what was not is answered `aborted`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the user says to a question: a value, or None for no answer."""

    question_id: str
    value: str | None


Op: TypeAlias = UserTurn | Interrupt | Answer

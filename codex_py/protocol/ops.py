"""Ops: everything a front end can ask of a session."""

from __future__ import annotations

from typing import Any, TypeAlias

from codex_py.protocol.input import UserInput
from codex_py.protocol.value import Value


class UserTurn(Value):
    """Start a turn. `output_schema` is a JSON schema the last message must satisfy."""

    input: tuple[UserInput, ...]
    output_schema: dict[str, Any] | None = None


class Interrupt(Value):
    """Stop the running turn; what was done is kept, what was not is answered `aborted`."""


class Answer(Value):
    """What the user says to a question: a value, or None for no answer; an approval is answered with its scope."""

    question_id: str
    value: str | None


Op: TypeAlias = UserTurn | Interrupt | Answer

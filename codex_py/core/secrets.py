"""The secrets of a session: what nobody may read, and what a skill needs. In memory only."""

from __future__ import annotations

from collections.abc import Mapping

from codex_py.protocol import events
from codex_py.protocol.questions import ApprovalQuestion
from codex_py.text.redact import Redactor
from codex_py.tools.spec import ToolOutput


class Secrets:
    """Knows every secret of the session and takes it out of what leaves it."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._given: dict[str, str | None] = {}

    def give(self, values: Mapping[str, str | None]) -> None:
        """Take what the user typed, or None for a variable they left open; it counts for the rest of the session."""
        self._given |= values
        self._redactor = self._redactor.with_secrets([value for value in values.values() if value])

    def was_asked_for(self, name: str) -> bool:
        return name in self._given

    def has(self, name: str) -> bool:
        return bool(self._given.get(name))

    @property
    def env(self) -> dict[str, str]:
        """The variables a tool's process gets."""
        return {name: value for name, value in self._given.items() if value}

    def redact(self, text: str) -> str:
        return self._redactor.redact(text)

    def redact_bytes(self, encoded: bytes) -> bytes:
        """The same for encoded JSON."""
        return self._redactor.redact_bytes(encoded)

    def without(self, output: ToolOutput) -> ToolOutput:
        text = self.redact(output.text)
        return output if text == output.text else ToolOutput(text, output.ok, output.parts, output.crash)

    def without_in(self, event: events.Event) -> events.Event:
        """A command or the model can give a key away; a script that reads our events must not find it there."""
        redact = self._redactor.redact
        match event:
            case events.MessageDone() | events.ReasoningDone():
                return event._replace(text=redact(event.text))
            case events.TurnCompleted(last_message=str(text)):
                return event._replace(last_message=redact(text))
            case events.QuestionAsked(ApprovalQuestion() as question):
                return event._replace(question=question.replace(command=redact(question.command)))
            case events.CommandStarted():
                return event._replace(command=redact(event.command))
            case events.CommandFinished():
                return event._replace(command=redact(event.command), output=redact(event.output))
            case events.PlanUpdated(steps, explanation):
                steps = tuple(step._replace(text=redact(step.text)) for step in steps)
                return events.PlanUpdated(steps, redact(explanation))
            case _:
                return event

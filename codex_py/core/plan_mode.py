"""Plan mode: the plan the model puts forward, and what its acceptance says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from codex_py.protocol.events import Event, MessageDone, PlanProposed, Retrying, TextDelta
from codex_py.protocol.readable import without_plan_tags

_TAGS: Final = ("<proposed_plan>", "</proposed_plan>")
_PLAN: Final = re.compile(r"^[ \t]*<proposed_plan>[ \t]*\n", re.MULTILINE)
_PLAN_END: Final = re.compile(r"^[ \t]*</proposed_plan>[ \t]*$", re.MULTILINE)


def proposed_plan(text: str) -> str | None:
    """The plan in a message, without its tags; None when there is none, or an empty one."""
    begins = list(_PLAN.finditer(text))
    if not begins:
        return None
    # A plan that was cut short is shown as far as it goes.
    end = _PLAN_END.search(text, begins[-1].end())
    return text[begins[-1].end() : end.start() if end else len(text)].strip() or None


def plan_accepted(request: str) -> str:
    """The message for the model when the user accepts its plan."""
    more = f"\n\n{request.strip()}" if request.strip() else ""
    return f"The plan is accepted. Carry it out.{more}"


class PlanReader:
    """Passes on what a model says in plan mode: its plan as an event of its own, the text without the tags."""

    def __init__(self, turn_id: str, emit: Callable[[Event], None]) -> None:
        self._turn_id = turn_id
        self._emit = emit
        # The line that is coming, as long as it may be a tag; None once it is known not to be one.
        self._line: str | None = ""

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                if shown := "".join(map(self._feed, text.splitlines(keepends=True))):
                    self._emit(TextDelta(shown))
            case MessageDone(text):
                self._end_text()
                self._emit(MessageDone(without_plan_tags(text)))
                if plan := proposed_plan(text):
                    self._emit(PlanProposed(self._turn_id, plan))
            case Retrying():
                self._end_text()
                self._emit(event)
            case _:
                self._emit(event)

    def _feed(self, piece: str) -> str:
        """What may be shown of the text once a piece without a line break inside has come."""
        ends = piece.endswith("\n")
        if self._line is None:
            self._line = "" if ends else None
            return piece
        line = self._line + piece
        if ends:
            self._line = ""
            return "" if line.strip() in _TAGS else line
        if any(tag.startswith(line.strip()) for tag in _TAGS):
            self._line = line
            return ""
        self._line = None
        return line

    def _end_text(self) -> None:
        rest, self._line = self._line or "", ""
        if rest and rest.strip() not in _TAGS:
            self._emit(TextDelta(rest))

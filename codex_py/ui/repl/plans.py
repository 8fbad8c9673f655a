"""Plan mode: when a turn ends with a plan, ask the user whether to carry it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.ops import AcceptPlan
from codex_py.render.questions import CARRY_OUT, CARRY_OUT_NO, CARRY_OUT_YES
from codex_py.ui.repl.panels.forms import Form, FormAsker, Option, Sheet
from codex_py.ui.repl.tasks import SideTasks

_Verdict: TypeAlias = Literal["yes", "with", "no"]

_SHEET: Final[Sheet[_Verdict]] = Sheet(
    title=CARRY_OUT,
    subject=(),
    options=(
        Option("y", CARRY_OUT_YES, "yes"),
        Option("w", "Yes, with more instructions", "with"),
        Option("n", CARRY_OUT_NO, "no"),
    ),
    refusal="no",
    default=2,
)


class PlanKeeper:
    """A listener of a session that asks about its plans; `begin` starts the turn that carries one out.

    `is_typing` says whether the user is in the middle of a text when the question comes up, `has_more` whether they
    have already sent more about the plan: then there is no question.
    """

    def __init__(
        self,
        asker: FormAsker,
        begin: Callable[[AcceptPlan], None],
        tasks: SideTasks,
        *,
        is_typing: Callable[[], bool],
        has_more: Callable[[], bool],
    ) -> None:
        self._asker = asker
        self._is_typing = is_typing
        self._has_more = has_more
        self._begin = begin
        self._tasks = tasks
        self._is_proposed = False

    def note_event(self, event: events.Event) -> None:
        """Ask when the turn that made the plan is over."""
        match event:
            case events.PlanProposed():
                self._is_proposed = True
            case events.TurnCompleted() if self._is_proposed:
                self._is_proposed = False
                if not self._has_more():
                    self._tasks.start(self._ask())
            case events.TurnStarted():
                self._is_proposed = False
            case _:
                pass

    async def _ask(self) -> None:
        verdict = await self._asker.choose(_SHEET, armed=not self._is_typing())
        if verdict == "yes":
            self._begin(AcceptPlan())
        elif verdict == "with":
            request = await self._asker.enter(Form("What else should it do?", enter="carry it out"))
            if request is not None:
                self._begin(AcceptPlan(request))

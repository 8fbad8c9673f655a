"""The model's plan as a check list."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.render.entry import Entry, Margin, OneLine, line_of, words

_MARKS: Final = {
    "completed": ("☑ ", "plan.done"),
    "in_progress": ("▸ ", "plan.now"),
    "pending": ("☐ ", "plan.todo"),
}


# A plan of more steps is told in so many rows.
_LONGEST_TOLD: Final = 12


def render_told_plan(plan: PlanUpdated) -> Entry:
    """A plan as it stands when its turn has ended: whole, or the part of a long one where the work is."""
    return render_plan(plan) if len(plan.steps) < _LONGEST_TOLD else render_plan_now(plan, _LONGEST_TOLD)


def render_plan(plan: PlanUpdated) -> Entry:
    """The steps as they stand, how many are done, and what changed."""
    parts: list[RenderableType] = [_head(plan)]
    if plan.explanation.strip():
        parts.append(Margin(words(plan.explanation.strip(), "dim"), "  ", "  "))
    for step in plan.steps:
        mark, style = _MARKS[step.status]
        parts.append(Margin(line_of(step.text, style), f"  {mark}", "    ", style=style))
    return Entry(*parts)


def render_plan_now(plan: PlanUpdated, rows: int) -> Entry:
    """A long plan in so many rows, three at least: the step that is next, those around it, and how many there are."""
    steps, most = plan.steps, max(1, rows - 3)
    now = next((number for number, step in enumerate(steps) if step.status != "completed"), len(steps))
    first = max(0, min(now - most // 3, len(steps) - most))
    parts: list[RenderableType] = [_head(plan)]
    if first:
        parts.append(_left_out(first, "before"))
    parts += [_line(step) for step in steps[first : first + most]]
    if after := len(steps) - first - most:
        parts.append(_left_out(after, "after"))
    return Entry(*parts)


def _head(plan: PlanUpdated) -> Text:
    done = sum(step.status == "completed" for step in plan.steps)
    return Text.assemble(("≡ ", "accent"), ("Plan", "strong"), (f" · {done} of {len(plan.steps)} done", "dim"))


def _line(step: PlanStep) -> OneLine:
    mark, style = _MARKS[step.status]
    return OneLine(Text.assemble((f"  {mark}", style), line_of(step.text, style)))


def _left_out(number: int, where: str) -> Text:
    return Text(f"    … {number} more {where}", "dim")

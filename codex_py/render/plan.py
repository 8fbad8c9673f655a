"""The model's plan as a check list."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, words

_MARKS: Final = {
    "completed": ("☑ ", "plan.done"),
    "in_progress": ("▸ ", "plan.now"),
    "pending": ("☐ ", "plan.todo"),
}


# A plan of more steps is shown in at most this many rows.
_MAX_STEPS: Final = 12


def render_final_plan(plan: PlanUpdated) -> ScrollbackEntry:
    """A plan as it stands when its turn has ended: whole, or the part of a long one where the work is."""
    return render_plan(plan) if len(plan.steps) < _MAX_STEPS else render_plan_now(plan, _MAX_STEPS)


def render_plan(plan: PlanUpdated) -> ScrollbackEntry:
    """The steps as they stand, how many are done, and what changed."""
    renderables: list[RenderableType] = [_head(plan)]
    if plan.explanation.strip():
        renderables.append(Margin(words(plan.explanation.strip(), "dim"), "  ", "  "))
    for step in plan.steps:
        mark, style = _MARKS[step.status]
        renderables.append(Margin(line_of(step.text, style), f"  {mark}", "    ", style=style))
    return ScrollbackEntry(*renderables)


def render_plan_now(plan: PlanUpdated, rows: int) -> ScrollbackEntry:
    """A long plan in so many rows, three at least: the step that is next, those around it, and how many there are."""
    steps, max_steps = plan.steps, max(1, rows - 3)
    now = next((number for number, step in enumerate(steps) if step.status != "completed"), len(steps))
    first = max(0, min(now - max_steps // 3, len(steps) - max_steps))
    renderables: list[RenderableType] = [_head(plan)]
    if first:
        renderables.append(_left_out(first, "before"))
    renderables += [_line(step) for step in steps[first : first + max_steps]]
    if after := len(steps) - first - max_steps:
        renderables.append(_left_out(after, "after"))
    return ScrollbackEntry(*renderables)


def _head(plan: PlanUpdated) -> Text:
    done = sum(step.status == "completed" for step in plan.steps)
    return Text.assemble(("≡ ", "accent"), ("Plan", "strong"), (f" · {done} of {len(plan.steps)} done", "dim"))


def _line(step: PlanStep) -> OneLine:
    mark, style = _MARKS[step.status]
    return OneLine(Text.assemble((f"  {mark}", style), line_of(step.text, style)))


def _left_out(number: int, where: str) -> Text:
    return Text(f"    … {number} more {where}", "dim")

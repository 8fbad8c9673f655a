"""The model's plan as a check list."""

from __future__ import annotations

from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import PlanUpdated
from codex_py.render.entry import Entry, Margin, line_of, words

_MARKS: Final = {
    "completed": ("☑ ", "plan.done"),
    "in_progress": ("▸ ", "plan.now"),
    "pending": ("☐ ", "plan.todo"),
}


def render_plan(plan: PlanUpdated) -> Entry:
    """The steps as they stand, how many are done, and what changed."""
    done = sum(step.status == "completed" for step in plan.steps)
    head = Text.assemble(("≡ ", "accent"), ("Plan", "strong"), (f" · {done} of {len(plan.steps)} done", "dim"))
    parts: list[RenderableType] = [head]
    if plan.explanation.strip():
        parts.append(Margin(words(plan.explanation.strip(), "dim"), "  ", "  "))
    for step in plan.steps:
        mark, style = _MARKS[step.status]
        parts.append(Margin(line_of(step.text, style), f"  {mark}", "    ", style=style))
    return Entry(*parts)

"""The `update_plan` tool: the model's list of steps, shown to the user. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput


class PlanStepArguments(BaseModel):
    step: str
    status: Literal["pending", "in_progress", "completed"]


class UpdatePlanArguments(BaseModel):
    explanation: str | None = None
    plan: list[PlanStepArguments]


async def update_plan(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Tell the front end the whole list; nothing is kept of it here. Raises `ToolError` for wrong arguments."""
    arguments = parse_arguments(call, UpdatePlanArguments)
    steps = tuple(PlanStep(step.step, step.status) for step in arguments.plan)
    context.emit(PlanUpdated(steps, arguments.explanation or ""))
    return ToolOutput("Plan updated")

"""The `update_plan` tool: the model's list of steps, shown to the user."""

from __future__ import annotations

from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import OtherFields, Tool, ToolContext, ToolOutput


class UpdatePlan(Tool):
    """Not beside others: of two plans in one answer the second counts."""

    name = "update_plan"
    type = "plans"
    hook_view = OtherFields(("TodoWrite",))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Send the front end the whole list; nothing is kept of it here."""
        arguments = self.read(call)
        steps = tuple(PlanStep(step["step"], step["status"]) for step in arguments["plan"])
        context.emit(PlanUpdated(steps, arguments.get("explanation", "")))
        return ToolOutput("Plan updated")

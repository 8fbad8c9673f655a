"""The tools `update_plan` and `skill`, which touch nothing outside of the session."""

from __future__ import annotations

from typing import Final

from codex_py.errors import ToolError
from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import OtherFields, SkillCall, Tool, ToolContext, ToolOutput


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


class LoadSkill(Tool):
    name = "skill"
    type = "reads"
    # The second name is Claude Code's, whose models know it by heart.
    aliases = (("skill", "name"),)
    other_names = ("Skill",)
    hook_view = OtherFields(("Skill",), (("skill", "name"),))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Give back the skill and the instruction to follow it, or what it has come to as a subagent.

        Raises `ToolError` for an unknown skill.
        """
        arguments = self.read(call)
        if context.use_skill is None:
            raise ToolError("skills are not available in this session")
        return ToolOutput(await context.use_skill(SkillCall(arguments["name"], arguments.get("args", "").strip())))


_DEFAULT: Final = 5
_MAX: Final = 20


class SkillSearchTool(Tool):
    name = "skill_search"
    type = "reads"

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Answer with what fits best, within a cap of bytes. Raises `ToolError` for a skill that there is not."""
        arguments = self.read(call)
        query = arguments["query"].strip()
        if context.search_skills is None:
            raise ToolError("skills cannot be searched in this session")
        if not query:
            raise ToolError("`query` is empty: say what to look for")
        limit = max(1, min(int(arguments.get("limit", _DEFAULT)), _MAX))
        skill = (arguments.get("skill") or "").strip() or None
        return ToolOutput(await context.search_skills(query, skill, limit))

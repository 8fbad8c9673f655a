"""The `skill` tool: the instructions of a skill as its output."""

from __future__ import annotations

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import OtherFields, Tool, ToolContext, ToolOutput


class LoadSkill(Tool):
    name = "skill"
    type = "reads"
    # The second name is Claude Code's, whose models know it by heart.
    aliases = (("skill", "name"),)
    hook_view = OtherFields(("Skill",), (("skill", "name"),))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Give back the skill and the instruction to follow it. Raises `ToolError` for a name that is no skill's."""
        arguments = self.read(call)
        if context.use_skill is None:
            raise ToolError("skills are not available in this session")
        loaded = await context.use_skill(arguments["name"])
        use = "Follow these instructions now"
        args = arguments.get("args", "").strip()
        return ToolOutput(f"{loaded}\n{use}, for: {args}" if args else f"{loaded}\n{use}.")

"""The `skill_search` tool: skills for a query, or passages of one skill."""

from __future__ import annotations

from typing import Final

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import Tool, ToolContext, ToolOutput

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

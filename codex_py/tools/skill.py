"""The `skill` tool: the instructions of a skill as its output. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, Field

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput


class SkillArguments(BaseModel):
    # The second name is Claude Code's, whose models know it by heart.
    name: str = Field(validation_alias=AliasChoices("name", "skill"))
    args: str | None = None


async def load_skill(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Give back the skill and the word to follow it. Raises `ToolError` for a name that is no skill's."""
    arguments = parse_arguments(call, SkillArguments)
    if context.use_skill is None:
        raise ToolError("skills are not available in this session")
    loaded = await context.use_skill(arguments.name)
    use = "Follow these instructions now"
    args = (arguments.args or "").strip()
    return ToolOutput(f"{loaded}\n{use}, for: {args}" if args else f"{loaded}\n{use}.")

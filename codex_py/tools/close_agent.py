"""The `close_agent` tool: an agent that is no longer needed. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from pydantic import AliasChoices, BaseModel, Field

from codex_py.protocol.items import ToolCall
from codex_py.tools.agent_calls import as_output, report_agent_call, spawner_of, status_of
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput


class CloseAgentArguments(BaseModel):
    target: str = Field(validation_alias=AliasChoices("target", "id"))


async def close_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Stop it, and tell what it was doing before. Raises `ToolError` for an agent that there is not."""
    target = parse_arguments(call, CloseAgentArguments).target
    async with report_agent_call("close_agent", context, targets=[target]) as ended:
        before = await spawner_of(context).close(target)
        ended([before])
    return as_output({"previous_status": status_of(before, context.output_tokens)})

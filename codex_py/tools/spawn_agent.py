"""The `spawn_agent` tool: another session for a task of its own. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from pydantic import Field

from codex_py.protocol.items import ToolCall
from codex_py.tools.agent_calls import InputArguments, as_output, report_agent_call, spawner_of, texts_in
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import SpawnRequest, ToolContext, ToolOutput


class SpawnAgentArguments(InputArguments):
    agent_type: str | None = None
    fork_context: bool = False
    skills: list[str] = Field(default_factory=list[str])
    model: str | None = None
    reasoning_effort: str | None = None


async def spawn_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Start an agent, and give back what it is called at once. Raises `ToolError` for what cannot be started."""
    arguments = parse_arguments(call, SpawnAgentArguments)
    request = SpawnRequest(
        task=arguments.to_inputs(),
        role=arguments.agent_type or "",
        model=arguments.model or None,
        effort=arguments.reasoning_effort or None,
        skills=tuple(arguments.skills),
        fork=arguments.fork_context,
    )
    async with report_agent_call("spawn_agent", context, prompt=texts_in(request.task)) as ended:
        state = await spawner_of(context).spawn(request)
        ended([state])
    return as_output({"agent_id": state.id, "nickname": state.name})

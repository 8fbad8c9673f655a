"""The `wait_agent` tool: what agents have come to. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from typing import Final

from pydantic import AliasChoices, BaseModel, Field

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.agent_calls import as_output, report_agent_call, spawner_of, status_of
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput

_USUAL_MS: Final = 30_000.0
_MAX_MS: Final = 3_600_000.0


class WaitAgentArguments(BaseModel):
    targets: list[str] = Field(validation_alias=AliasChoices("targets", "ids"))
    timeout_ms: float | None = None


async def wait_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Wait for the first of them, and tell the status of all that have ended. Raises `ToolError` without a target."""
    arguments = parse_arguments(call, WaitAgentArguments)
    targets = list(dict.fromkeys(arguments.targets))
    if not targets:
        raise ToolError("`targets` is empty: name the agents to wait for")
    spawner = spawner_of(context)
    seconds = min(_USUAL_MS if arguments.timeout_ms is None else arguments.timeout_ms, _MAX_MS) / 1000
    async with report_agent_call("wait", context, targets=targets) as ended:
        states = await spawner.wait(targets, seconds)
        ended(states)
    # As the model has named them.
    target_names = {state.id if (state := spawner.find(target)) else target: target for target in targets}
    budget = context.output_tokens // max(1, len(states))
    statuses = {target_names.get(state.id, state.id): status_of(state, budget) for state in states}
    return as_output({"status": statuses, "timed_out": not states})

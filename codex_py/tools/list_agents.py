"""The `list_agents` tool. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

from codex_py.protocol.items import ToolCall
from codex_py.text.excerpt import first_words
from codex_py.tools.agent_calls import as_output, spawner_of, status_of
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput

_MAX_AGENTS: Final = 100
_TASK_SHOWN: Final = 200


class ListAgentsArguments(BaseModel):
    """There are none."""


async def list_agents(call: ToolCall, context: ToolContext) -> ToolOutput:
    """The agents of the session, the last hundred of them."""
    parse_arguments(call, ListAgentsArguments)
    states = spawner_of(context).states()[-_MAX_AGENTS:]
    budget = context.output_tokens // max(1, 2 * len(states))
    entries = [
        {
            "agent_id": state.id,
            "nickname": state.name,
            **({"agent_type": state.role} if state.role else {}),
            "task": first_words(state.task, _TASK_SHOWN),
            "agent_status": status_of(state, budget),
        }
        for state in states
    ]
    return as_output({"agents": entries})

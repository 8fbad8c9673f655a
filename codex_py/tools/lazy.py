"""Tools of which only the spec is read at the start; the rest is imported when the first call is on its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import HookView, OtherFields, RunCall, Tool, ToolContext, ToolOutput

AGENT_TOOLS: Final = frozenset({"spawn_agent", "send_input", "wait_agent", "close_agent", "list_agents"})


class LazyTool(Tool):
    """A tool whose spec is `NAME.json`; `load` imports what runs its calls."""

    def __init__(
        self,
        name: str,
        load: Callable[[], RunCall],
        *,
        parallel: bool = False,
        polls: bool = False,
        hook_view: HookView = Tool.hook_view,
    ) -> None:
        self.name = name
        self.parallel = parallel
        self.polls = polls
        self.hook_view = hook_view
        self._load = load

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raises `ToolError` for failures the model can act on."""
        return await self._load()(call, context)


class SpawnTool(LazyTool):
    """`spawn_agent`, whose spec names the roles there are."""

    def __init__(self, roles: Sequence[tuple[str, str]]) -> None:
        view = OtherFields(("Task", "Agent"), (("prompt", "message"), ("subagent_type", "agent_type")))
        super().__init__("spawn_agent", _spawn_agent, parallel=True, hook_view=view)
        self._roles = roles

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model; the same for the same roles."""
        spec = super().spec()
        role = spec["parameters"]["properties"]["agent_type"]
        role["description"] += "".join(f"\n- `{name}`: {about}" for name, about in self._roles)
        return spec


def make_agent_tools(roles: Sequence[tuple[str, str]]) -> list[Tool]:
    """The tools for agents. `roles` are names and what each is for, in the order they are shown."""
    return [
        SpawnTool(roles),
        # Not in parallel: input sent in the same response counts before the wait starts.
        LazyTool("send_input", _send_input, hook_view=OtherFields(("SendMessage",), (("prompt", "message"),))),
        LazyTool("wait_agent", _wait_agent, polls=True),
        LazyTool("close_agent", _close_agent),
        LazyTool("list_agents", _list_agents, polls=True),
    ]


def _spawn_agent() -> RunCall:
    from codex_py.tools.agents import spawn_agent

    return spawn_agent


def _send_input() -> RunCall:
    from codex_py.tools.agents import send_input

    return send_input


def _wait_agent() -> RunCall:
    from codex_py.tools.agents import wait_agent

    return wait_agent


def _close_agent() -> RunCall:
    from codex_py.tools.agents import close_agent

    return close_agent


def _list_agents() -> RunCall:
    from codex_py.tools.agents import list_agents

    return list_agents

"""Sessions that the model starts in the background: what the composition root needs of them.

Most sessions start no agent, so that what reads roles, runs calls and starts agents is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from codex_py.config.schema import Config
from codex_py.core.conversation import TurnRunner
from codex_py.core.ports import AgentSpawner
from codex_py.core.session_file import SessionFile
from codex_py.core.session_request import SessionRequest
from codex_py.paths import is_directory
from codex_py.subagents.roles import BUILT_IN, AgentRole, SessionRoles
from codex_py.tools.lazy import LazyTool
from codex_py.tools.spec import HookView, OtherFields, RunCall, Tool


def session_roles(request: SessionRequest) -> SessionRoles:
    """The roles of a session: built-in, the user's, and those of a trusted project."""
    if not request.loaded.config.features.multi_agent:
        return SessionRoles({})
    entries = request.loaded.config.agents.roles
    directories: list[tuple[Path, Path | None]] = [(request.home / "agents", None)]
    root = request.loaded.project_root or request.cwd
    if request.loaded.trust == "trusted":
        directories.append((root / ".codex" / "agents", root))
    directories = [(path, inside) for path, inside in directories if is_directory(path)]
    if not (directories or entries):
        return SessionRoles({role.name: role for role in BUILT_IN})
    from codex_py.subagents.role_files import read_roles

    return read_roles(directories, entries)


def make_agent_tools(config: Config, roles: SessionRoles) -> tuple[Tool, ...]:
    """The tools for agents, in the order they are shown; none where the configuration switches agents off."""
    if not (config.features.multi_agent and config.agents.max_depth):
        return ()
    return (
        _SpawnTool(roles.roles),
        # Not in parallel: input sent in the same response counts before the wait starts.
        _AgentTool("send_input", hook_view=OtherFields(("SendMessage",), (("prompt", "message"),))),
        _AgentTool("wait_agent", polls=True),
        _AgentTool("close_agent"),
        _AgentTool("list_agents", polls=True),
    )


def make_agents(turns: TurnRunner, config: Config, roles: SessionRoles, file: SessionFile) -> AgentSpawner:
    """What starts the agents of a session of the user."""
    from codex_py.subagents.spawner import AgentTree, Subagents

    tree = AgentTree(config.agents.max_threads, config.agents.max_depth, roles.roles, file)
    return Subagents(turns, tree, depth=0)


class _AgentTool(LazyTool):
    type = "delegates"
    spec_directory = Path(__file__).parent

    def __init__(
        self, name: str, *, parallel: bool = False, polls: bool = False, hook_view: HookView = Tool.hook_view
    ) -> None:
        super().__init__(name, partial(_load_call, name), parallel=parallel, polls=polls, hook_view=hook_view)


class _SpawnTool(_AgentTool):
    """`spawn_agent`, whose spec lists the roles."""

    def __init__(self, roles: Mapping[str, AgentRole]) -> None:
        view = OtherFields(("Task", "Agent"), (("prompt", "message"), ("subagent_type", "agent_type")))
        super().__init__("spawn_agent", parallel=True, hook_view=view)
        self._roles = roles

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model; the same for the same roles."""
        spec = super().spec()
        choice = spec["parameters"]["properties"]["agent_type"]
        choice["description"] += "".join(f"\n- `{role.name}`: {role.about}" for role in self._roles.values())
        return spec


def _load_call(name: str) -> RunCall:
    from codex_py.subagents.tools import CALLS

    return CALLS[name]

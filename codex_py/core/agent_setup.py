"""What a session needs for agents before the first one is started: their roles, their limits, and their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from codex_py.core.agent_role import BUILT_IN, AgentRole
from codex_py.core.agent_tree import AgentTree
from codex_py.core.lazy_agents import AgentLimits, LazySubagents
from codex_py.paths import is_directory
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.agents import SubagentContext, Subagents
    from codex_py.core.session_file import SessionFile
    from codex_py.core.session_request import SessionRequest


class SessionRoles(Value):
    """The roles by name, in their order, and a line for each file that is none."""

    roles: Mapping[str, AgentRole]
    warnings: tuple[str, ...] = ()

    def shown(self) -> tuple[tuple[str, str], ...]:
        """What the model is shown of them."""
        return tuple((role.name, role.about) for role in self.roles.values())


def session_roles(request: SessionRequest) -> SessionRoles:
    """The roles there are for a session: built-in, the user's, and those of a project the user trusts."""
    if not request.loaded.config.features.multi_agent:
        return SessionRoles({})
    entries = request.loaded.config.agents.roles
    directories = [request.home / "agents"]
    root = request.loaded.project_root or request.cwd
    if request.loaded.trust == "trusted":
        directories.append(root / ".codex" / "agents")
    there = [directory for directory in directories if is_directory(directory)]
    if not (there or entries):
        return SessionRoles({role.name: role for role in BUILT_IN})
    from codex_py.core.agent_roles import RoleDirectory, read_roles  # the seam: only for who has such a file

    inside = [RoleDirectory(directory, None if directory == directories[0] else root) for directory in there]
    return read_roles(inside, entries)


def make_lazy_subagents(request: SessionRequest, session_roles: SessionRoles, file: SessionFile) -> LazySubagents:
    """The place of the agents of a session of a user's."""
    config = request.loaded.config.agents

    def make(context: SubagentContext) -> Subagents:
        from codex_py.core.agents import Subagents  # the seam: few sessions start agents

        limits = AgentLimits(config.max_threads, config.max_depth)
        return Subagents(context, AgentTree(limits, session_roles.roles, file), depth=0)

    return LazySubagents(make)

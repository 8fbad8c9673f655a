"""Sets up the agents of a session: the roles there are, and what starts the first agent."""

from __future__ import annotations

from codex_py.core.ports import AgentSpawner
from codex_py.core.session_agents import BUILT_IN, AgentLimits, AgentTree, LazySubagents, SessionRoles
from codex_py.core.session_file import SessionFile
from codex_py.core.session_request import SessionRequest
from codex_py.core.session_services import SubagentContext
from codex_py.paths import is_directory


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


def make_lazy_subagents(
    request: SessionRequest, session_roles: SessionRoles, file: SessionFile
) -> LazySubagents[SubagentContext]:
    """The place of the agents of a session of a user's."""
    config = request.loaded.config.agents

    def make(context: SubagentContext) -> AgentSpawner:
        from codex_py.core.agents import Subagents  # the seam: few sessions start agents

        limits = AgentLimits(config.max_threads, config.max_depth)
        return Subagents(context, AgentTree(limits, session_roles.roles, file), depth=0)

    return LazySubagents(make)

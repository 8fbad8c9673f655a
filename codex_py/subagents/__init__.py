"""Sessions that the model starts in the background: what the composition root needs of them.

Most sessions start no agent, so that what reads roles and starts agents is imported when it is needed.
"""

from __future__ import annotations

from pathlib import Path

from codex_py.config.schema import Config
from codex_py.core.conversation import TurnRunner
from codex_py.core.ports import AgentSpawner
from codex_py.core.session_file import SessionFile
from codex_py.core.session_request import SessionRequest
from codex_py.paths import is_directory
from codex_py.subagents.roles import BUILT_IN, SessionRoles


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


def make_agents(turns: TurnRunner, config: Config, roles: SessionRoles, file: SessionFile) -> AgentSpawner:
    """What starts the agents of a session of the user."""
    from codex_py.subagents.spawner import AgentTree, Subagents

    tree = AgentTree(config.agents.max_threads, config.agents.max_depth, roles.roles, file)
    return Subagents(turns, tree, depth=0)

"""What all subagents below one session of a user's share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from codex_py.core.lazy_agents import AgentLimits
from codex_py.protocol.ids import uuid7

if TYPE_CHECKING:
    from codex_py.core.agent_role import AgentRole
    from codex_py.core.session_file import SessionFile


class AgentTree:
    """What all agents below one session of a user's share: their limits, their names, and how many are at work."""

    def __init__(self, limits: AgentLimits, roles: Mapping[str, AgentRole], file: SessionFile) -> None:
        self.limits: Final = limits
        self.roles: Final = roles
        self.file: Final = file
        self.names: Final[set[str]] = set()
        self.at_work: Final[set[str]] = set()
        self._newest_ms = 0

    def new_id(self) -> str:
        """An id that sorts after all before it, those of the same millisecond too: agents are listed by age."""
        self._newest_ms = max(self._newest_ms + 1, time.time_ns() // 1_000_000)
        return uuid7(self._newest_ms)

    def name_for(self, role: str) -> str:
        """A new name: `agent-1`, `explorer-2`."""
        stem, number = role or "agent", 1
        while f"{stem}-{number}" in self.names:
            number += 1
        self.names.add(f"{stem}-{number}")
        return f"{stem}-{number}"

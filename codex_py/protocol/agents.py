"""Agents: sessions that a session started, as people and the model see them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from codex_py.protocol.value import Value

AgentStatus: TypeAlias = Literal[
    "pending_init", "running", "interrupted", "completed", "errored", "shutdown", "not_found"
]
AgentTool: TypeAlias = Literal["spawn_agent", "send_input", "wait", "close_agent"]

AT_WORK: frozenset[AgentStatus] = frozenset({"pending_init", "running"})


class AgentState(Value):
    """One agent as it is now.

    `id` is that of its session, `parent` that of the session which started it, `depth` how many stand above it.
    `message` is its last word, or why it failed. `activity` is what it does at the moment, in a line; `is_waiting` says
    that it waits for an answer of the user. `tokens` counts its whole session.
    """

    id: str
    name: str
    parent: str
    depth: int
    task: str
    status: AgentStatus
    role: str = ""
    model: str = ""
    message: str | None = None
    activity: str = ""
    is_waiting: bool = False
    tokens: int = 0

    @property
    def title(self) -> str:
        """What people call it: `agent-1`, `agent explorer-1`."""
        return self.name if self.name.startswith("agent-") else f"agent {self.name}"

    @property
    def is_at_work(self) -> bool:
        return self.status in AT_WORK


def status_payload(status: AgentStatus, message: str | None) -> str | dict[str, Any]:
    """A status as the model reads it: a word, or an object with what the agent said last or why it failed."""
    return {status: message} if status in ("completed", "errored") else status

"""The roles of agents: values, and the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from codex_py.protocol.policy import SandboxMode
from codex_py.protocol.value import Value

AGENT_TOOLS: Final = frozenset({"spawn_agent", "send_input", "wait_agent", "close_agent", "list_agents"})


class ToolChoice(Value):
    """Which tools a role may use: names that are allowed, None for all, and names that never are.

    An entry that ends in `*` matches all names with that prefix; `mcp__server` matches all tools of the server.
    `reads_only` says that no allowed tool is there to change files.
    """

    allowed: frozenset[str] | None
    denied: frozenset[str] = frozenset()
    reads_only: bool = False

    def allows(self, name: str) -> bool:
        """Whether an agent may use the tool of this name."""
        return (self.allowed is None or _matches(name, self.allowed)) and not _matches(name, self.denied)


class AgentRole(Value):
    """How the model chooses the role (`about`), the instructions of its agents, and what restricts them.

    `model`, `effort` and `tools` are None for those of the parent session, `provider` is None for any. Without
    `may_ask`, what needs the user's approval is refused. `path` is the file of the role, None for a built-in one;
    `warnings` are about its keys that are ignored.
    """

    name: str
    about: str = ""
    instructions: str = ""
    model: str | None = None
    effort: str | None = None
    sandbox: SandboxMode | None = None
    tools: ToolChoice | None = None
    skills: tuple[str, ...] = ()
    provider: str | None = None
    may_ask: bool = True
    path: Path | None = None
    warnings: tuple[str, ...] = ()


BUILT_IN: Final = (
    AgentRole(
        "explorer",
        "answers questions about the code, and changes nothing",
        "You are an explorer: find out what you are asked, and report it with the paths and lines it stands in. Change"
        " nothing. Answer briefly: whoever asked reads nothing but your last message.",
        sandbox="read-only",
    ),
    AgentRole(
        "worker",
        "carries out a well-described piece of work, such as a fix or a part of a feature",
        "You are a worker: do the piece of work you are given, and no more. Others may work in the same folder: leave"
        " alone what you have not changed yourself. Name the files you changed in your last message.",
    ),
)


class SessionRoles(Value):
    """The roles by name, in the order the model sees, and warnings about files that were left out."""

    roles: Mapping[str, AgentRole]
    warnings: tuple[str, ...] = ()


def _matches(name: str, entries: frozenset[str]) -> bool:
    return name in entries or any(
        (entry.endswith("*") and name.startswith(entry[:-1]))
        or (entry.startswith("mcp__") and name.startswith(f"{entry}__"))
        for entry in entries
    )

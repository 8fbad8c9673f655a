"""What an agent of a kind is, and the kinds that are always there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from codex_py.protocol.policy import SandboxMode
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.core.agent_tools import ToolChoice


class AgentRole(Value):
    """Texts for the model and for the choice, and what narrows an agent of the role.

    `model` and `effort` are None where it has those of the session; `tools` is None where it has all of them.
    `provider` is the only one it is for, None for any. Without `may_ask` what needs a yes of the user is
    refused. `path` is the file it was read from, None for a built-in one; `remarks` are what is ignored in it.
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
    remarks: tuple[str, ...] = ()


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

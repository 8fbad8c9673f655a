"""What a front end shows of a session on request: its subagents, commands, prompts, context window, and facts."""

from __future__ import annotations

from pathlib import Path
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
    that it waits for an answer of the user. `tokens` counts its whole session, `cost` says what that came to.
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
    cost: str = ""

    @property
    def title(self) -> str:
        """What people call it: `agent-1`, `agent explorer-1`."""
        return self.name if self.name.startswith("agent-") else f"agent {self.name}"

    @property
    def is_at_work(self) -> bool:
        return self.status in AT_WORK


def status_payload(status: AgentStatus, message: str | None) -> str | dict[str, Any]:
    """A status as the model reads it: a word, or an object with the agent's last message or why it failed."""
    return {status: message} if status in ("completed", "errored") else status


class LiveProcess(Value):
    """`id` is the session ID the model knows it by; `outside` says that no sandbox holds it.

    `tail` is the end of what it has printed, 2,000 characters at most. `agent` is what the agent is called that has
    started it, "" for a command of the session's own.
    """

    id: int
    command: str
    cwd: Path
    seconds: float
    tty: bool
    outside: bool
    tail: str
    agent: str = ""


class ListedHook(Value):
    """One hook: its event, its command, and where it is written.

    `runs` says whether it does. `asks` says that it needs the user's agreement, `changed` that the user agreed to it
    before it, or a file it names, changed. `outside` says that no sandbox holds it. `skill` is the `SKILL.md` of a
    skill's hook.
    """

    event: str
    matcher: str
    command: str
    source: str
    where: str
    seconds: float
    runs: bool
    asks: bool
    changed: bool = False
    fail_closed: bool = False
    outside: bool = False
    skill: Path | None = None


class PromptArgument(Value):
    name: str
    description: str
    required: bool


class PromptCommand(Value):
    """A prompt of an MCP server as a command without its slash; arguments come in this order, or as `name=value`."""

    name: str
    description: str
    arguments: tuple[PromptArgument, ...]
    server: str
    prompt: str


class FactSection(Value):
    """A part of a page: a heading, and rows of a name and what is said of it."""

    heading: str
    rows: tuple[tuple[str, str], ...]


# In the order they are shown. `host` is what else the program says: permissions, environment, notes, summaries.
ContextSectionName: TypeAlias = Literal[
    "base", "tools", "skills_list", "injected_skills", "agents_md", "host", "messages", "calls", "outputs", "reasoning"
]


class ContextSection(Value):
    name: ContextSectionName
    tokens: int


class ContextUse(Value):
    """Tokens the next request takes; the sections add up to `total`, and those of nothing are left out.

    `measured` says that the total is counted: by the provider, with an estimate of what came since its last answer,
    or by the model's tokenizer; else it is an estimate as a whole. How the total splits is always one. The history is
    compacted from `compacted_at` on. `window` is None where the model's is not known.
    """

    sections: tuple[ContextSection, ...]
    total: int
    window: int | None
    compacted_at: int | None
    measured: bool


class HooksRan(Value):
    """An event: the hooks of `name` that were run together have ended; `refused` says that one of them said no."""

    name: str
    count: int
    seconds: float
    refused: bool = False


class FilesChanged(Value):
    """The changes of a turn to the files of the workspace, by any means; sent before the turn ends."""

    turn_id: str
    changed: int
    deleted: int

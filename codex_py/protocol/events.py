"""Events: everything a front end can learn about a running session.

An event says what happened, not how to draw it. Texts are as the model, a tool or a server wrote them: whoever puts
them on a terminal passes them through `text.sanitize` first.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """The settings a session begins with. `resumed` counts the items it took over from an earlier run."""

    thread_id: str
    model: str
    provider: str
    cwd: Path
    approval: ApprovalPolicy
    sandbox: SandboxPolicy
    effort: str | None
    summary: str | None
    resumed: int = 0
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class Warned:
    """Something the user should know; the work goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class TurnStarted:
    turn_id: str


@dataclass(frozen=True, slots=True)
class TextDelta:
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True, slots=True)
class MessageDone:
    """The model finished a message."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDone:
    text: str


@dataclass(frozen=True, slots=True)
class CommandStarted:
    call_id: str
    command: str
    cwd: Path


@dataclass(frozen=True, slots=True)
class CommandFinished:
    """`exit_code` is None while the command still runs in the background, and when it was refused or stopped."""

    call_id: str
    command: str
    cwd: Path
    output: str
    exit_code: int | None
    seconds: float
    status: Literal["completed", "failed", "declined", "in_progress"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a patch: its absolute path, what happens to it, where it moves, and the unified diff."""

    path: Path
    kind: Literal["add", "delete", "update"]
    move_path: Path | None = None
    diff: str = ""


@dataclass(frozen=True, slots=True)
class PatchStarted:
    call_id: str
    changes: tuple[FileChange, ...]


@dataclass(frozen=True, slots=True)
class PatchFinished:
    call_id: str
    changes: tuple[FileChange, ...]
    ok: bool
    output: str


@dataclass(frozen=True, slots=True)
class WebSearched:
    id: str
    query: str
    action: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Retrying:
    """A request failed and is sent again after `delay` seconds. `limit` is None when a time budget bounds it."""

    message: str
    attempt: int
    limit: int | None
    delay: float


@dataclass(frozen=True, slots=True)
class UsageReported:
    """Tokens of the response that just ended, and of the whole session."""

    last: TokenUsage
    total: TokenUsage
    context_window: int | None


@dataclass(frozen=True, slots=True)
class ItemRecorded:
    """An item entered the history; the rollout recorder listens for this."""

    item: ResponseItem


@dataclass(frozen=True, slots=True)
class TurnCompleted:
    turn_id: str
    last_message: str | None
    usage: TokenUsage


@dataclass(frozen=True, slots=True)
class TurnFailed:
    turn_id: str
    message: str


@dataclass(frozen=True, slots=True)
class TurnInterrupted:
    turn_id: str


Event: TypeAlias = (
    SessionStarted
    | Warned
    | TurnStarted
    | TextDelta
    | ReasoningDelta
    | MessageDone
    | ReasoningDone
    | CommandStarted
    | CommandFinished
    | PatchStarted
    | PatchFinished
    | WebSearched
    | Retrying
    | UsageReported
    | ItemRecorded
    | TurnCompleted
    | TurnFailed
    | TurnInterrupted
)

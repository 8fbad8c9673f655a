"""Events: everything a front end can learn about a running session.

An event says what happened, not how to draw it. Texts are as the model, a tool or a server wrote them: whoever puts
them on a terminal passes them through `text.sanitize` first. They are named tuples because every start defines all of
them, and a dataclass takes five times as long to define; compare events of different types by type as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.questions import Question
from codex_py.protocol.usage import TokenUsage


class SessionStarted(NamedTuple):
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


class Warned(NamedTuple):
    """Something the user should know; the work goes on."""

    message: str


class TurnStarted(NamedTuple):
    turn_id: str


class TextDelta(NamedTuple):
    text: str


class ReasoningDelta(NamedTuple):
    text: str


class MessageDone(NamedTuple):
    """The model finished a message."""

    text: str


class ReasoningDone(NamedTuple):
    text: str


class CommandStarted(NamedTuple):
    call_id: str
    command: str
    cwd: Path


class CommandFinished(NamedTuple):
    """`exit_code` is None while the command still runs in the background, and when it was refused or stopped."""

    call_id: str
    command: str
    cwd: Path
    output: str
    exit_code: int | None
    seconds: float
    status: Literal["completed", "failed", "declined", "in_progress"]


class FileChange(NamedTuple):
    """One file of a patch: its absolute path, what happens to it, where it moves, and the unified diff."""

    path: Path
    kind: Literal["add", "delete", "update"]
    move_path: Path | None = None
    diff: str = ""


class PatchStarted(NamedTuple):
    call_id: str
    changes: tuple[FileChange, ...]


class PatchFinished(NamedTuple):
    call_id: str
    changes: tuple[FileChange, ...]
    ok: bool
    output: str


class PlanStep(NamedTuple):
    text: str
    status: Literal["pending", "in_progress", "completed"]


class PlanUpdated(NamedTuple):
    """The model's list of steps, whole, as it stands now; `explanation` says what changed, or is empty."""

    steps: tuple[PlanStep, ...]
    explanation: str = ""


class WebSearched(NamedTuple):
    id: str
    query: str
    action: dict[str, Any]


class SkillUsed(NamedTuple):
    """A skill was put before the model, or a command read its `SKILL.md` or ran one of its scripts."""

    name: str
    scope: Literal["repo", "user", "system", "admin"]
    path: Path
    kind: Literal["explicit", "read", "script"]


class QuestionAsked(NamedTuple):
    """The turn waits for an `Answer` op with the question's id."""

    question: Question


class Retrying(NamedTuple):
    """A request failed and is sent again after `delay` seconds. `limit` is None when a time budget bounds it."""

    message: str
    attempt: int
    limit: int | None
    delay: float


class UsageReported(NamedTuple):
    """Tokens of the response that just ended, and of the whole session."""

    last: TokenUsage
    total: TokenUsage
    context_window: int | None


class ItemRecorded(NamedTuple):
    """An item entered the history; the rollout recorder listens for this."""

    item: ResponseItem


class TurnCompleted(NamedTuple):
    turn_id: str
    last_message: str | None
    usage: TokenUsage


class TurnFailed(NamedTuple):
    turn_id: str
    message: str


class TurnInterrupted(NamedTuple):
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
    | PlanUpdated
    | WebSearched
    | SkillUsed
    | QuestionAsked
    | Retrying
    | UsageReported
    | ItemRecorded
    | TurnCompleted
    | TurnFailed
    | TurnInterrupted
)

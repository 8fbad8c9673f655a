"""Events: everything a front end can learn about a running session.

An event says what happened, not how to draw it. Texts are as they came: a terminal gets them through `text.sanitize`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import SkillScope
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.questions import ApprovalMissing, FileChange, Question
from codex_py.protocol.status import AgentState, AgentStatus, AgentTool, FilesChanged, HooksRan
from codex_py.protocol.usage import CompactionReason, CompactionWay, Costs, TokenUsage
from codex_py.protocol.value import Value


class SessionStarted(Value):
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


class Warned(Value):
    """Something the user should know; `code` is `sandbox_missing` where that is why commands are refused."""

    message: str
    code: Literal["", "sandbox_missing"] = ""


class TurnStarted(Value):
    """`messages` are the user's messages, without pictures."""

    turn_id: str
    messages: tuple[str, ...] = ()


class Steered(Value):
    """A message sent while a turn ran has reached the model. With `new_turn` it is what that turn begins with."""

    turn_id: str
    messages: tuple[str, ...]
    new_turn: bool = False


class SettingsChanged(Value):
    """The settings of the next turn, after the user changed some."""

    model: str
    effort: str | None
    summary: str | None
    cwd: Path
    approval: ApprovalPolicy
    sandbox: SandboxPolicy
    plan: bool = False


class TextDelta(Value):
    text: str


class ReasoningDelta(Value):
    text: str


class MessageDone(Value):
    """The model finished a message."""

    text: str


class ReasoningDone(Value):
    text: str


class CommandStarted(Value):
    """`by_user` says that the user typed the command, not the model."""

    call_id: str
    command: str
    cwd: Path
    by_user: bool = False


class CommandOutput(Value):
    """The newest output of a running command, at most 20 times a second and 8 KiB each.

    If output comes faster, only its end is sent; `CommandFinished` has all of it, as far as it is kept.
    """

    call_id: str
    text: str


class CommandDetached(Value):
    """The call of a command was answered while it runs; it goes on in the background until `CommandFinished`."""

    call_id: str
    command: str


class CommandInput(Value):
    """The model types into the command of `call_id`, which still runs, or looks at it, with an empty `text`."""

    call_id: str
    command: str
    text: str


class CommandFinished(Value):
    """`exit_code` is None while the command still runs in the background, and when it was refused or stopped.
    `seconds` are 0 when unknown. `in_background` says that its call was answered before, `stopped_by_user` that the
    user stopped it there, `only_reads` that it is known to change nothing."""

    call_id: str
    command: str
    cwd: Path
    output: str
    exit_code: int | None
    seconds: float
    status: Literal["completed", "failed", "declined", "in_progress"]
    by_user: bool = False
    in_background: bool = False
    stopped_by_user: bool = False
    only_reads: bool = False


class PatchStarted(Value):
    call_id: str
    changes: tuple[FileChange, ...]


class PatchFinished(Value):
    call_id: str
    changes: tuple[FileChange, ...]
    ok: bool
    output: str


class McpCallStarted(Value):
    """The model calls a tool of an MCP server."""

    call_id: str
    server: str
    tool: str
    arguments: dict[str, Any]


class McpCallProgress(Value):
    """How far a call is, as its server tells it, at most ten times a second; `total` is None where it does not say."""

    call_id: str
    done: float
    total: float | None = None
    message: str = ""


class McpCallFinished(Value):
    """`result` has the `content` and the `structured_content` of the answer; without one `error` says why.

    `output` is the text in it.
    """

    call_id: str
    server: str
    tool: str
    arguments: dict[str, Any]
    status: Literal["completed", "failed", "declined"]
    seconds: float
    output: str = ""
    result: dict[str, Any] | None = None
    error: str | None = None


class ToolCallFinished(Value):
    """A call that emitted no other event: of a tool without events of its own, or one that never got to work.

    `arguments` are as the model wrote them.
    """

    call_id: str
    tool: str
    arguments: str
    ok: bool
    seconds: float
    output: str = ""


class PatchRejected(Value):
    """A patch of which nothing was written: it was refused, or it does not fit the files."""

    call_id: str
    reason: str


class PlanStep(Value):
    text: str
    status: Literal["pending", "in_progress", "completed"]


class PlanUpdated(Value):
    """The model's list of steps, whole, as it stands now; `explanation` says what changed, or is empty."""

    steps: tuple[PlanStep, ...]
    explanation: str = ""


class PlanProposed(Value):
    """In plan mode the model has put forward a plan. When the turn has ended, `AcceptPlan` accepts the last one."""

    turn_id: str
    text: str


class WebSearched(Value):
    id: str
    query: str
    action: dict[str, Any]


class SkillUsed(Value):
    """A skill was used: put before the model, read or run by a command. `applied` are its fields in force now."""

    name: str
    scope: SkillScope
    path: Path
    kind: Literal["explicit", "read", "script"]
    applied: tuple[tuple[str, str], ...] = ()


class SkillSuggested(Value):
    """The model was pointed to a skill for what the user has just written; `named` when the user named it in words."""

    name: str
    scope: SkillScope
    path: Path
    named: bool = False


class AgentCallStarted(Value):
    """The model deals with agents; `targets` are the ids of those it names, and `prompt` is what one is sent."""

    call_id: str
    tool: AgentTool
    targets: tuple[str, ...] = ()
    prompt: str | None = None


class AgentCallFinished(Value):
    """`agents` are those the call was about, as they were at its end; `error` says why it failed."""

    call_id: str
    tool: AgentTool
    agents: tuple[AgentState, ...] = ()
    prompt: str | None = None
    error: str | None = None


class AgentChanged(Value):
    """An agent began, does something else, waits, or ended. `was` is its status before, None for a new one."""

    agent: AgentState
    was: AgentStatus | None = None


class QuestionRaised(Value):
    """The turn waits for an `Answer` op with the question's id."""

    question: Question


class QuestionClosed(Value):
    """A question no longer waits: it was answered, or the answer is not needed any more."""

    question_id: str


class Retrying(Value):
    """A request failed and is sent again after `delay` seconds. `limit` is None when a time budget bounds it."""

    message: str
    attempt: int
    limit: int | None
    delay: float


class UsageReported(Value):
    """Tokens of the response that just ended, of the whole session, and of the running turn so far; what they cost."""

    last: TokenUsage
    total: TokenUsage
    context_window: int | None
    turn: TokenUsage = TokenUsage()
    costs: Costs = Costs()


class CompactionStarted(Value):
    """The history is about to be replaced by a summary. `tokens` is about how much it takes now."""

    reason: CompactionReason
    tokens: int


class ContextCompacted(Value):
    """The history was replaced. The tokens are estimates of the next request, before and after."""

    before_tokens: int
    after_tokens: int
    how: CompactionWay | Literal["cut"]
    """`local`: a summary by the model; `remote`, `in-band`: an item by the provider; `cut`: parts were left out."""
    reason: CompactionReason
    summary: str = ""
    """Empty where it cannot be read."""


class ItemRecorded(Value):
    """An item entered the history; the rollout recorder listens for this."""

    item: ResponseItem


class TurnCompleted(Value):
    """`usage` is of the whole session, `turn_usage` of this turn; `costs` are of both."""

    turn_id: str
    last_message: str | None
    usage: TokenUsage
    turn_usage: TokenUsage = TokenUsage()
    costs: Costs = Costs()


class TurnFailed(Value):
    """`code` is the server's word, `prompt_refused` where a hook lets none through, or empty; scripts get `failure`."""

    turn_id: str
    message: str
    code: str = ""
    failure: str = ""


class TurnInterrupted(Value):
    turn_id: str


Event: TypeAlias = (
    SessionStarted
    | Warned
    | TurnStarted
    | Steered
    | SettingsChanged
    | TextDelta
    | ReasoningDelta
    | MessageDone
    | ReasoningDone
    | CommandStarted
    | CommandOutput
    | CommandDetached
    | CommandInput
    | CommandFinished
    | PatchStarted
    | PatchFinished
    | PatchRejected
    | ApprovalMissing
    | McpCallStarted
    | McpCallProgress
    | McpCallFinished
    | ToolCallFinished
    | PlanUpdated
    | PlanProposed
    | WebSearched
    | SkillUsed
    | SkillSuggested
    | AgentCallStarted
    | AgentCallFinished
    | AgentChanged
    | QuestionRaised
    | QuestionClosed
    | Retrying
    | UsageReported
    | CompactionStarted
    | ContextCompacted
    | ItemRecorded
    | FilesChanged
    | HooksRan
    | TurnCompleted
    | TurnFailed
    | TurnInterrupted
)

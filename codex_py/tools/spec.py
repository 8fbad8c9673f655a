"""What a tool is. Handlers implement `Tool`; nothing else knows them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from codex_py.protocol.events import Event
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.questions import Question
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.process.manager import ProcessManager
    from codex_py.sandbox.command import Sandbox
    from codex_py.tools.grants import Approvals


class ToolContext(Value):
    """What a tool may know and touch during one call.

    `output_tokens` is the model's cap for one tool output; `env` is the environment tool processes get, already
    filtered by the policy. `ask` puts a question to the user and waits; it is None where nobody can answer. `widen`
    puts a policy the user agreed to in place of `sandbox_policy` for the rest of the turn. `approvals` is what the
    user has allowed and forbidden so far. `shortfall` is what the sandbox here cannot hold, unless the user has
    accepted that. `plan` says that the turn is one of plan mode: nothing may be written, whatever a rule or an answer
    would allow. Everything here comes from the session, never from the call's arguments.
    """

    call_id: str
    cwd: Path
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    sandbox: Sandbox
    processes: ProcessManager
    env: Mapping[str, str]
    output_tokens: int
    emit: Callable[[Event], None]
    ask: Callable[[Question], Awaitable[str | None]] | None = None
    widen: Callable[[SandboxPolicy], None] | None = None
    approvals: Approvals | None = None
    shortfall: str | None = None
    plan: bool = False


class ToolOutput(Value):
    """What the model reads: a text, or content parts (`input_text`, `input_image`) when `parts` is not empty.

    `crash` is set by the registry alone, for a bug in a tool: the call is answered and then the turn fails.
    """

    text: str
    ok: bool = True
    parts: tuple[dict[str, Any], ...] = ()
    crash: Exception | None = None


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def parallel(self) -> bool:
        """Whether calls may overlap with other parallel calls."""
        ...

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model. Must be stable: it is part of the cached prefix."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raise `ToolError` for failures the model can act on."""
        ...

"""What is fixed for the length of one turn."""

from __future__ import annotations

from pathlib import Path

from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.value import Value


class ModelSettings(Value):
    """The model and how it is asked; `output_tokens` caps one tool output."""

    model: str
    instructions: str
    effort: str | None
    summary: str | None
    verbosity: str | None
    service_tier: str | None
    parallel_tool_calls: bool
    context_window: int | None
    output_tokens: int
    show_raw_reasoning: bool = False


class TurnContext(Value):
    """The settings of one turn, frozen when it starts."""

    turn_id: str
    thread_id: str
    cwd: Path
    settings: ModelSettings
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    output_schema: bytes | None = None

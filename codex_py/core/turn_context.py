"""What is fixed for the length of one turn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy


@dataclass(frozen=True, slots=True)
class ModelSettings:
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


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The settings of one turn, frozen when it starts."""

    turn_id: str
    thread_id: str
    cwd: Path
    settings: ModelSettings
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    output_schema: bytes | None = None

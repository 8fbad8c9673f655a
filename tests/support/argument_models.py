"""The arguments of some tools as pydantic models, to compare what is read with."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, Field

from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import parse_arguments


def _whole(value: object) -> object:
    """A float without its fraction: models write `500.0`, and half a millisecond matters to nobody."""
    return int(value) if isinstance(value, float) and value == value and abs(value) < 2**53 else value


Whole = Annotated[int, BeforeValidator(_whole)]


class ExecCommandArguments(BaseModel):
    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = True
    tty: bool = False
    yield_time_ms: Whole = 10_000
    max_output_tokens: Whole = 10_000
    sandbox_permissions: Literal["use_default", "require_escalated"] = "use_default"
    justification: str | None = None
    prefix_rule: list[str] = Field(default_factory=list)


class WriteStdinArguments(BaseModel):
    session_id: Whole
    chars: str = ""
    yield_time_ms: Whole | None = None
    max_output_tokens: Whole = 10_000


class OptionArguments(BaseModel):
    label: str
    description: str


class QuestionArguments(BaseModel):
    id: str
    header: str
    question: str
    options: list[OptionArguments] = Field(min_length=1)


class RequestUserInputArguments(BaseModel):
    questions: list[QuestionArguments] = Field(min_length=1, max_length=3)


class PlanStepArguments(BaseModel):
    step: str
    status: Literal["pending", "in_progress", "completed"]


class UpdatePlanArguments(BaseModel):
    explanation: str | None = None
    plan: list[PlanStepArguments]


def judged(call: ToolCall, model: type[BaseModel]) -> dict[str, object]:
    """The fields that pydantic reads of a call."""
    return parse_arguments(call, model).model_dump(exclude_unset=True)

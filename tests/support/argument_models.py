"""The arguments of some tools as pydantic models, to compare what is read with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall


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
    """The fields that pydantic reads of a call. Raises `ToolError` with what it finds wrong, in our words."""
    failed = "failed to parse function arguments"
    try:
        fields = json.loads(call.arguments or "{}")
    except ValueError:
        raise ToolError(f"{failed}: not JSON") from None
    if not isinstance(fields, dict):
        raise ToolError(f"{failed}: not a JSON object: `{_show(fields)}`")
    try:
        return model.model_validate(fields).model_dump(exclude_unset=True)
    except ValidationError as error:
        faults = [_fault(cast("Mapping[str, Any]", fault)) for fault in error.errors(include_url=False)]
        raise ToolError(f"{failed}: {'; '.join(faults)}") from None


def _show(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_EXPECTED: Final = {
    "string_type": "a string",
    "string_unicode": "valid Unicode",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
}


def _fault(fault: Mapping[str, Any]) -> str:
    name = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "missing":
        return f"missing field `{name}`"
    if fault["type"] == "too_short":
        return f"`{name}` must have at least {fault['ctx']['min_length']}, found {fault['ctx']['actual_length']}"
    if fault["type"] == "too_long":
        return f"`{name}` must have at most {fault['ctx']['max_length']}, found {fault['ctx']['actual_length']}"
    if fault["type"] in ("literal_error", "enum"):
        expected = f"one of {fault['ctx']['expected']}".replace("'", "`")
    else:
        expected = _EXPECTED.get(fault["type"], "")
    if not expected:
        return f"`{name}`: {str(fault['msg']).lower()}"
    return f"`{name}` must be {expected}, found `{_show(fault['input'])}`"

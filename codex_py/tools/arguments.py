"""Reading the arguments of a call through a pydantic model, with errors a model can act on in one line.

This module may be imported at start-up; the pydantic models live in modules of their own, imported at a tool's first
call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from codex_py.errors import ToolError
from codex_py.protocol.encoding import decode_json
from codex_py.protocol.items import ToolCall

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model = TypeVar("Model", bound=BaseModel)

PARSE_FAILED: Final = "failed to parse function arguments"
_SHOWN: Final = 60
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


def parse_arguments(call: ToolCall, model: type[Model]) -> Model:
    """The call's arguments as a `model`; fields it does not know are ignored. Raises `ToolError` with one line."""
    from pydantic import ValidationError  # the seam: already loaded, since `model` is a pydantic class

    try:
        return model.model_validate(decode_arguments(call))
    except ValidationError as error:
        faults = [_fault(cast("Mapping[str, Any]", fault)) for fault in error.errors(include_url=False)]
        raise ToolError(f"{PARSE_FAILED}: {'; '.join(faults)}") from None


def decode_arguments(call: ToolCall) -> dict[str, Any]:
    """The call's arguments without those that are null. Raises `ToolError` for what is not a JSON object."""
    try:
        value = decode_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"{PARSE_FAILED}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ToolError(f"{PARSE_FAILED}: not a JSON object: `{show_value(value)}`")
    # A null stands for a field that is not there.
    return {key: field for key, field in cast("dict[str, Any]", value).items() if field is not None}


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
    return f"`{name}` must be {expected}, found `{show_value(fault['input'])}`"


def show_value(value: object) -> str:
    """A value as an error message quotes it: one line, cut where it is long."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "…"
    text = text.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

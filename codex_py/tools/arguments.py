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

_PREFIX: Final = "failed to parse function arguments"
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
        return model.model_validate(_arguments(call))
    except ValidationError as error:
        faults = [_fault(cast("Mapping[str, Any]", fault)) for fault in error.errors(include_url=False)]
        raise ToolError(f"{_PREFIX}: {'; '.join(faults)}") from None


def plain_arguments(call: ToolCall, fields: Mapping[str, type], *, needed: str) -> dict[str, Any] | None:
    """The call's arguments when they are exactly of these types and nothing else, `needed` among them.

    None for all others, which `parse_arguments` judges. What this gives, it would give as well.
    """
    arguments = _arguments(call)
    if needed not in arguments:
        return None
    for name, value in arguments.items():
        # `True` is an int to Python, and half a surrogate pair a string.
        if type(value) is not fields.get(name) or (isinstance(value, str) and not _is_unicode(value)):
            return None
    return arguments


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = decode_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"{_PREFIX}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ToolError(f"{_PREFIX}: not a JSON object: `{_shown(value)}`")
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
    return f"`{name}` must be {expected}, found `{_shown(fault['input'])}`"


def _shown(value: object) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "…"
    text = text.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

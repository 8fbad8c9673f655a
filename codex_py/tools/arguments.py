"""Reading the arguments of a call by the JSON schema that the model was shown, with errors it can act on in one line.

Models write `"true"`, `500.0` and `null` for a field they leave out; what is meant is taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, Final, cast

from codex_py.errors import ToolError
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.items import ToolCall

_FAILED: Final = "failed to parse function arguments"
_SHOWN: Final = 60
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}


def read_arguments(
    call: ToolCall, schema: Mapping[str, Any], aliases: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The fields of `schema` that are there; others are ignored. Raises `ToolError` with one line.

    Understood are `type`, `properties`, `required`, `items`, `enum`, `minItems` and `maxItems`; a number is whole, an
    array becomes a tuple. `aliases` are pairs of another name of a field, and its name.
    """
    fields = fields_of(call)
    for alias, name in aliases:
        if fields.get(name) is None:
            fields[name] = fields.get(alias)
    reader = _Reader()
    read = reader.fields(fields, schema, "")
    if reader.faults:
        raise ToolError(f"{_FAILED}: {'; '.join(reader.faults)}")
    return read


def fields_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call, unchecked. Raises `ToolError` if they are not a JSON object."""
    try:
        value = decode_json(call.arguments or "{}")
    except ValueError as error:
        raise ToolError(f"{_FAILED}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ToolError(f"{_FAILED}: not a JSON object: `{_show(value)}`")
    return cast("dict[str, Any]", value)


class _Mismatch(Exception):
    """The message says which values are expected."""


class _Reader:
    """Collects what is wrong."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def fields(self, value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name, inner in schema["properties"].items():
            # A null stands for a field that is not there.
            if (field := value.get(name)) is not None:
                read[name] = self._value(field, inner, path + name)
            elif name in schema.get("required", ()):
                self.faults.append(f"missing field `{path}{name}`")
        return read

    def _value(self, value: object, schema: Mapping[str, Any], path: str) -> Any:
        try:
            match schema["type"]:
                case "object":
                    _expect(isinstance(value, dict), "an object")
                    return self.fields(as_object(value), schema, f"{path}.")
                case "array":
                    _expect(isinstance(value, list), "an array")
                    elements = as_list(value)
                    self._count(len(elements), schema, path)
                    return tuple(
                        self._value(element, schema["items"], f"{path}.{index}")
                        for index, element in enumerate(elements)
                    )
                case "boolean":
                    return _boolean(value)
                case "number":
                    return _whole_number(value)
                case _:
                    return _text(value, schema.get("enum"))
        except _Mismatch as expected:
            self.faults.append(f"`{path}` must be {expected}, found `{_show(value)}`")

    def _count(self, count: int, schema: Mapping[str, Any], path: str) -> None:
        if count < (least := schema.get("minItems", 0)):
            self.faults.append(f"`{path}` must have at least {least}, found {count}")
        if count > (most := schema.get("maxItems", count)):
            self.faults.append(f"`{path}` must have at most {most}, found {count}")


def _expect(is_so: bool, expected: str) -> None:
    if not is_so:
        raise _Mismatch(expected)


def _text(value: object, allowed: list[str] | None) -> object:
    if allowed is not None:
        *words, last = (f"`{word}`" for word in allowed)
        _expect(value in allowed, f"one of {', '.join(words)} or {last}")
        return value
    _expect(isinstance(value, str), "a string")
    try:
        str(value).encode()
    except UnicodeEncodeError:
        raise _Mismatch("valid Unicode") from None
    return value


def _boolean(value: object) -> bool:
    if isinstance(value, int | float) and value in (0, 1):
        return value == 1
    known = _BOOLEANS.get(value.lower()) if isinstance(value, str) else None
    if known is None:
        raise _Mismatch("true or false")
    return known


def _whole_number(value: object) -> int:
    """Fractions of a millisecond do not matter, and models write `500.0` and `"500"`."""
    if isinstance(value, float) and not isfinite(value):
        raise _Mismatch("a finite number")
    if isinstance(value, int) or (isinstance(value, float) and abs(value) < 2**53):
        return int(value)
    digits, _, fraction = value.partition(".") if isinstance(value, str) else ("", "", "")
    with suppress(ValueError):
        if not fraction.strip("0"):
            return int(digits)
    raise _Mismatch("a whole number")


def _show(value: object) -> str:
    """A value as an error message quotes it: one line, cut where it is long."""
    try:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        text = "…"
    text = text.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"

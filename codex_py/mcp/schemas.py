"""The parameters of a server's tool as every model API takes them.

OpenAI and Anthropic refuse a whole request for one odd schema. So only keywords of JSON Schema 2020-12 with values of
the right type stay, local references are replaced by what they name, the root is an object without alternatives, and
names of parameters are letters of ASCII, digits, `_`, `.` and `-`, at most 64.
The server checks the arguments itself: a rule that is dropped here is only a hint less for the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from codex_py.mcp.names import parameter_names
from codex_py.protocol.encoding import as_list, as_object, encode_json

_MAX_DEPTH: Final = 32
# References can make a small schema grow without end.
_MAX_SCHEMAS: Final = 4000
_MAX_BYTES: Final = 64 * 1024
_TYPES: Final = {
    **{name: name for name in ("object", "array", "string", "number", "integer", "boolean", "null")},
    **dict.fromkeys(("int", "int32", "int64", "long", "uint", "short"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric"), "number"),
    **dict.fromkeys(("str", "text", "date", "datetime", "date-time", "time", "uuid", "uri", "url", "enum"), "string"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("list", "tuple", "set"), "array"),
    **dict.fromkeys(("dict", "map", "mapping", "record", "struct", "json"), "object"),
    **dict.fromkeys(("none", "nil"), "null"),
}
_ALTERNATIVES: Final = ("anyOf", "oneOf", "allOf")
ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object", "properties": {}, "additionalProperties": True}


def why_unusable(schema: object) -> str | None:
    """Why no call could fit a schema of arguments; None if one could."""
    root = as_object(schema)
    if not root and schema not in ({}, None, True):
        return "its parameters are not a JSON object"
    kinds = _types(root.get("type"))
    if not kinds or kinds[0] == "null" or "object" in kinds or as_object(root.get("properties")):
        return None
    return f"its parameters are of type `{kinds[0]}`, and not an object"


def parameters_for_model(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments, repaired.

    A schema that is too large, also after its references are replaced, becomes one that takes any object.
    """
    try:
        repaired = _Repair(schema).root()
        if len(encode_json(repaired)) <= _MAX_BYTES:
            return repaired
    except (RecursionError, OverflowError, ValueError):
        pass
    return dict(ANY_OBJECT)


def _types(value: object) -> list[str]:
    """The types of a schema by their standard names; unknown ones are left out."""
    names = as_list(value) or [value]
    known = [_TYPES.get(name.lower()) for name in names if isinstance(name, str)]
    return list(dict.fromkeys(name for name in known if name))


class _Repair:
    """One pass over a schema: `OverflowError` when there is too much of it."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._names = parameter_names(root)
        self._schemas = 0

    def root(self) -> dict[str, Any]:
        """The whole, with the properties of its alternatives side by side."""
        found = self._schema(self._root, (), 0)
        whole = {"type": "object", **_merged(found)}
        whole["type"] = "object"
        whole["properties"] = whole.get("properties", {})
        return {key: value for key, value in whole.items() if key not in ("enum", "const", "items")}

    def _schema(self, value: object, opened: tuple[str, ...], depth: int) -> dict[str, Any]:
        self._schemas += 1
        if self._schemas > _MAX_SCHEMAS:
            raise OverflowError
        if not isinstance(value, dict) or depth > _MAX_DEPTH:
            return {}
        schema = cast("dict[str, Any]", value)
        if isinstance(ref := schema.get("$ref"), str):
            rest = {key: schema[key] for key in schema if key != "$ref"}
            # A schema that contains itself ends where it begins again.
            target = {} if ref in opened else self._target(ref)
            return self._schema({**target, **rest}, (*opened, ref), depth + 1)
        result = {key: schema[key] for key, is_right in _PLAIN.items() if key in schema and is_right(schema[key])}
        if kinds := _types(schema.get("type")):
            result["type"] = kinds[0] if len(kinds) == 1 else kinds
        self._add_object(schema, result, opened, depth)
        self._add_array(schema, result, opened, depth)
        for key in _ALTERNATIVES:
            parts = [self._schema(part, opened, depth + 1) for part in as_list(schema.get(key)) if part is not False]
            if parts:
                result[key] = parts
        if ("anyOf" in result or "oneOf" in result) and result.get("type") == "null":
            del result["type"]
        return result

    def _target(self, ref: str) -> dict[str, Any]:
        """The schema that a local reference names; an empty one for any other reference."""
        found: object = self._root
        for step in ref.removeprefix("#").split("/")[1:] if ref.startswith("#") else [""]:
            name = step.replace("~1", "/").replace("~0", "~").replace("%24", "$")
            branch = as_list(found)
            if name.isdecimal() and int(name) < len(branch):
                found = branch[int(name)]
            else:
                found = as_object(found).get(name)
        return as_object(found)

    def _add_object(
        self, schema: Mapping[str, Any], result: dict[str, Any], opened: tuple[str, ...], depth: int
    ) -> None:
        entries = {name: part for name, part in as_object(schema.get("properties")).items() if part is not False}
        if entries:
            result["properties"] = {
                self._names.get(name, name): self._schema(part, opened, depth + 1) for name, part in entries.items()
            }
            result.setdefault("type", "object")
        elif isinstance(schema.get("properties"), dict):
            result["properties"] = {}
        extra = schema.get("additionalProperties")
        if isinstance(extra, bool):
            result["additionalProperties"] = extra
        elif _is_object(extra):
            result["additionalProperties"] = self._schema(extra, opened, depth + 1)
        # Older drafts write `required: true` into the property itself.
        marked = [name for name, part in entries.items() if as_object(part).get("required") is True]
        names = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        if required := list(dict.fromkeys([*names, *marked])):
            result["required"] = [self._names.get(name, name) for name in required]

    def _add_array(
        self, schema: Mapping[str, Any], result: dict[str, Any], opened: tuple[str, ...], depth: int
    ) -> None:
        """The items of an array, which the APIs want to know; those of a tuple become alternatives of each other."""
        items = schema.get("items")
        places = as_list(items) or as_list(schema.get("prefixItems"))
        rest = schema.get("additionalItems") if as_list(items) else items
        if "array" not in _types(schema.get("type")) and not places and not _is_object(items):
            return
        if "type" not in result and not any(key in result for key in _ALTERNATIVES):
            result["type"] = "array"
        parts = [self._schema(entry, opened, depth + 1) for entry in [*places, *([rest] if _is_object(rest) else [])]]
        different = [part for index, part in enumerate(parts) if part not in parts[:index]]
        result["items"] = different[0] if len(different) == 1 else {"anyOf": different} if different else {}
        if choices := [value for value in as_list(result.pop("enum", None)) if not isinstance(value, list)]:
            # They are meant for each item.
            result["items"].setdefault("enum", choices)
        if places and rest is False:
            result.setdefault("maxItems", len(places))


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object without alternatives at its root: all their properties, and what each of them requires."""
    result = {key: value for key, value in schema.items() if key not in _ALTERNATIVES}
    for key in _ALTERNATIVES:
        parts = [_merged(part) for part in schema.get(key, ())]
        properties: dict[str, Any] = dict(as_object(result.get("properties")))
        for part in parts:
            for name, value in part.get("properties", {}).items():
                properties[name] = _either(properties[name], value) if name in properties else value
        required = [set(part.get("required", ())) for part in parts]
        if required:
            common = set[str]().union(*required) if key == "allOf" else required[0].intersection(*required[1:])
            names = dict.fromkeys([*result.get("required", ()), *sorted(common)])
            result = {**result, "properties": properties, "required": list(names)}
    if not result.get("required"):
        result.pop("required", None)
    return result


def _either(first: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    known = first["anyOf"] if set(first) == {"anyOf"} else [first]
    return first if other in known or not first or not other else {"anyOf": [*known, other]}


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_pattern(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _is_choice(value: object) -> bool:
    return bool(as_list(value))


def _is_any(_value: object) -> bool:
    return True


# The keywords that hold no schema, with the values they may have.
_PLAIN: Final[Mapping[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("title", "description", "format"), _is_text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    "multipleOf": lambda value: _is_number(value) and cast("float", value) > 0,
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _is_count),
    "pattern": _is_pattern,
    "enum": _is_choice,
    **dict.fromkeys(("const", "default"), _is_any),
    "uniqueItems": lambda value: isinstance(value, bool),
}

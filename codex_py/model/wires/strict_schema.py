"""JSON schemas for `strict` mode, in which servers take only closed objects whose properties are all required."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

_SUPPORTED: Final = frozenset(
    {
        *("type", "title", "description", "enum", "const", "pattern", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    }
)
# The answer is checked against them when it is there.
_LEFT_OUT: Final = frozenset(
    {
        *("default", "examples", "discriminator", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment"),
        *(
            "minLength",
            "maxLength",
            "uniqueItems",
            "minProperties",
            "maxProperties",
            "required",
            "additionalProperties",
        ),
    }
)
_FORMATS: Final = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


class SentSchema(NamedTuple):
    """An encoded schema, and whether the server is asked to be strict about it."""

    encoded: bytes
    strict: bool


@lru_cache(maxsize=8)
def sent_schema(encoded: bytes) -> SentSchema:
    """An encoded schema completed for `strict` mode where it then means the same; else as it is, and not strict."""
    schema = as_object(decode_json(encoded))
    definitions = as_object(schema.get("$defs"))
    if (top := definitions.get(str(schema.get("$ref")).removeprefix("#/$defs/"))) is not None:
        # As pydantic writes a model that contains itself.
        schema = {**as_object(top), "$defs": definitions}
    try:
        completed = _completed(schema)
    except ValueError:
        return SentSchema(encoded, strict=False)
    if completed.get("type") != "object":
        return SentSchema(encoded, strict=False)
    return SentSchema(encoded if completed == schema else encode_json(completed), strict=True)


def _completed(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Raises `ValueError` for what strict mode cannot say."""
    if "$ref" in schema:
        # Nothing may stand beside a reference, apart from the definitions at the top.
        if not str(schema["$ref"]).startswith("#"):
            raise ValueError("a reference to another file")
        return {"$ref": schema["$ref"]}
    completed: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _SUPPORTED or (key == "format" and value in _FORMATS):
            completed[key] = value
        elif key in ("properties", "$defs", "definitions"):
            completed[key] = {name: _completed(as_object(inner)) for name, inner in as_object(value).items()}
        elif key == "items":
            completed[key] = _completed(as_object(value))
        elif key in ("anyOf", "oneOf"):
            completed["anyOf"] = [_completed(as_object(inner)) for inner in as_list(value)]
        elif key not in _LEFT_OUT and key != "format":
            raise ValueError(key)
    if not completed.keys() & {"type", "anyOf", "enum", "const"}:
        raise ValueError("a value of any type")
    if schema.get("type") == "object" or "properties" in schema:
        completed |= _closed(schema)
    return completed


def _closed(schema: Mapping[str, Any]) -> dict[str, Any]:
    if schema.get("additionalProperties", False) is not False or "properties" not in schema:
        raise ValueError("an object of any keys")
    required = as_list(schema.get("required"))
    for name, inner in as_object(schema["properties"]).items():
        if name not in required and "default" not in as_object(inner) and not _may_be_null(as_object(inner)):
            raise ValueError("a property that may be missing and not null")
    names = list(as_object(schema["properties"]))
    return {
        "required": required if set(required) == set(names) else names,
        "additionalProperties": False,
    }


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    kinds = [schema.get("type"), *as_list(schema.get("type"))]
    return "null" in kinds or any(_may_be_null(as_object(inner)) for inner in as_list(schema.get("anyOf")))

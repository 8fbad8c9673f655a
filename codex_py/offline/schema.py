"""An answer in the shape of a JSON schema: the text where a text is asked for, the plainest value elsewhere."""

from __future__ import annotations

import math
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object

_DEEPEST: Final = 12
_MOST_ITEMS: Final = 50
# A schema may refer to itself from many places at once.
_MOST_VALUES: Final = 2_000
_FORMATS: Final = (
    ("date-time", "1970-01-01T00:00:00Z"),
    ("date", "1970-01-01"),
    ("time", "00:00:00Z"),
    ("email", "nobody@example.invalid"),
    ("uri", "about:blank"),
    ("uuid", "00000000-0000-0000-0000-000000000000"),
    ("ipv4", "127.0.0.1"),
    ("ipv6", "::1"),
    ("hostname", "localhost"),
)


def fit(schema: dict[str, Any], text: str) -> Any:
    """A value that satisfies `schema` as well as rules can: an object unless it asks for something else.

    Work and depth are bounded, whatever the schema refers to; past the bounds the plainest empty value stands.
    """
    asks_for_an_object = not any(key in schema for key in ("type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"))
    return _Fitting(schema, text).value({"type": "object", **schema} if asks_for_an_object else schema, 0)


class _Fitting:
    def __init__(self, root: dict[str, Any], text: str) -> None:
        self._root = root
        self._text = text
        self._left = _MOST_VALUES

    def value(self, given: object, depth: int) -> Any:
        self._left -= 1
        schema = self._resolved(as_object(given), 0)
        if "const" in schema:
            return schema["const"]
        if choices := as_list(schema.get("enum")):
            return choices[0]
        for key in ("anyOf", "oneOf"):
            options = [self._resolved(as_object(option), 0) for option in as_list(schema.get(key))[:_MOST_ITEMS]]
            if options and depth < _DEEPEST:
                chosen = next((option for option in options if option.get("type") != "null"), options[0])
                return self.value(
                    {**{name: value for name, value in schema.items() if name != key}, **chosen}, depth + 1
                )
        match _kind(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "number":
                return _number(schema)
            case "integer":
                return int(_number(schema))
            case "boolean":
                return False
            case "null":
                return None
            case _:
                return _string(schema, self._text)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        properties = as_object(schema.get("properties"))
        required = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        names = [name for name in properties if name in required] if required or depth > 2 else list(properties)
        names += [name for name in required if name not in properties]
        result: dict[str, Any] = {}
        for name in names:
            if depth >= _DEEPEST or self._left <= 0:
                break
            result[name] = self.value(properties.get(name, {}), depth + 1)
        return result

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        least = _bound(schema, "minItems")
        number = min(int(least), _MOST_ITEMS) if least is not None else 0
        prefix = as_list(schema.get("prefixItems"))
        items = [*prefix[:number], *([schema.get("items", {})] * max(0, number - len(prefix)))]
        return [self.value(item, depth + 1) for item in items if depth < _DEEPEST and self._left > 0]

    def _resolved(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """The schema with its reference followed and its `allOf` parts merged in."""
        if depth >= _DEEPEST:
            return schema
        if isinstance(target := schema.get("$ref"), str):
            siblings = {key: value for key, value in schema.items() if key != "$ref"}
            return self._resolved({**siblings, **self._target(target)}, depth + 1)
        parts = as_list(schema.get("allOf"))[:_DEEPEST]
        schema = {key: value for key, value in schema.items() if key != "allOf"} if parts else schema
        for part in parts:
            self._left -= 1
            if self._left <= 0:
                break
            merged = self._resolved(as_object(part), depth + 1)
            properties = {**as_object(schema.get("properties")), **as_object(merged.get("properties"))}
            required = [*as_list(schema.get("required")), *as_list(merged.get("required"))]
            schema = {**schema, **merged, "properties": properties, "required": required}
        return schema

    def _target(self, reference: str) -> dict[str, Any]:
        found = self._root
        for part in reference.removeprefix("#").split("/"):
            found = as_object(found.get(part.replace("~1", "/").replace("~0", "~"))) if part else found
        return found


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if kinds := [name for name in as_list(kind) if isinstance(name, str)]:
        preferred = [name for name in ("string", "object") if name in kinds]
        return next(iter(preferred or [name for name in kinds if name != "null"]), "null")
    if schema.get("properties") or schema.get("required"):
        return "object"
    return "array" if "items" in schema else "string"


def _number(schema: dict[str, Any]) -> float:
    """0, or the nearest allowed number to it."""
    low, high = _bound(schema, "minimum"), _bound(schema, "maximum")
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    unit = _bound(schema, "multipleOf") or 1
    value: float = 0
    if low is not None and value < low:
        value = math.ceil(low / unit) * unit
    if above is not None and value <= above:
        value = (math.floor(above / unit) + 1) * unit
    if high is not None and value > high:
        value = math.floor(high / unit) * unit
    if below is not None and value >= below:
        value = (math.ceil(below / unit) - 1) * unit
    return value


def _bound(schema: dict[str, Any], key: str) -> float | None:
    bound = schema.get(key)
    if isinstance(bound, bool) or not isinstance(bound, int | float):
        return None
    return bound if math.isfinite(bound) and abs(bound) < 1e15 else None


def _string(schema: dict[str, Any], text: str) -> str:
    plain = next((value for name, value in _FORMATS if name == schema.get("format")), text)
    most, least = schema.get("maxLength"), schema.get("minLength")
    if isinstance(most, int) and not isinstance(most, bool) and 0 <= most < len(plain):
        plain = plain[: most - 1] + "…" if most > 1 else plain[:most]
    if isinstance(least, int) and not isinstance(least, bool) and len(plain) < least <= 10_000:
        plain = plain.ljust(least, ".")
    return plain

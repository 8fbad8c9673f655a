"""Output schemas as people and pydantic write them, against a server with the rules of OpenAI's strict mode."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_responses import Request, api_error, fake_model, repeat, say
from tests.support.home import Place
from tests.support.process import run

STRING = {"type": "string"}
NULLABLE = {"anyOf": [STRING, {"type": "null"}], "default": None, "title": "Note"}
ADDRESS = {"title": "Address", "type": "object", "properties": {"city": STRING}, "required": ["city"]}


def thing(properties: dict[str, Any], required: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return {"title": "Thing", "type": "object", "properties": properties, "required": required or [], **more}


def faults(schema: Any) -> list[str]:
    """What strict mode refuses (platform.openai.com, "Structured outputs: supported schemas")."""
    if isinstance(schema, list):
        return [fault for inner in schema for fault in faults(inner)]
    if not isinstance(schema, dict):
        return []
    found = [key for key in ("default", "oneOf", "allOf", "patternProperties", "not", "discriminator") if key in schema]
    if "$ref" in schema and len(schema) > 1:
        found.append("$ref cannot have keywords beside it")
    if not {"type", "$ref", "anyOf", "enum", "const"} & set(schema):
        found.append("a schema must have a type")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            found.append("'additionalProperties' is required to be supplied and to be false")
        if sorted(schema.get("required", [])) != sorted(schema.get("properties", {})):
            found.append("'required' is required to be an array including every key in properties")
    maps = [schema.get(key, {}) for key in ("properties", "$defs")]
    inner = [*(value for one in maps for value in one.values()), *schema.get("anyOf", []), schema.get("items")]
    return found + faults(inner)


ROWS: list[tuple[dict[str, Any], Any, bool]] = [
    # The schema, an answer, and whether strict mode can be asked for. Where no other source is named:
    # docs.pydantic.dev, "JSON Schema".
    (thing({"ok": STRING}, ["ok"], additionalProperties=False), {"ok": "a"}, True),
    # lfnovo/esperanto#273, generative-computing/mellea#1491: no `additionalProperties`
    (thing({"ok": STRING}, ["ok"]), {"ok": "a"}, True),
    (thing({"ok": STRING, "note": NULLABLE}, ["ok"]), {"ok": "a", "note": None}, True),
    (thing({"n": {"type": "integer", "default": 3}}), {"n": 4}, True),
    (
        thing({"at": {"$ref": "#/$defs/Address"}}, ["at"], **{"$defs": {"Address": ADDRESS}}),
        {"at": {"city": "x"}},
        True,
    ),
    # generative-computing/mellea#1493: words beside a reference
    (
        thing({"at": {"$ref": "#/$defs/Address", "description": "where"}}, ["at"], **{"$defs": {"Address": ADDRESS}}),
        {"at": {"city": "x"}},
        True,
    ),
    (
        thing({"all": {"type": "array", "items": {"$ref": "#/$defs/A"}}}, ["all"], **{"$defs": {"A": ADDRESS}}),
        {"all": []},
        True,
    ),
    (thing({"kind": {"enum": ["a", "b"], "type": "string"}}, ["kind"]), {"kind": "a"}, True),
    # livekit/agents#5302: a tagged union
    (
        thing({"x": {"oneOf": [{"$ref": "#/$defs/A"}], "discriminator": {}}}, ["x"], **{"$defs": {"A": ADDRESS}}),
        {"x": {"city": "y"}},
        True,
    ),
    (thing({"name": {"type": "string", "minLength": 1, "maxLength": 9}}, ["name"]), {"name": "a"}, True),
    (thing({"at": {"type": "string", "format": "date-time"}}, ["at"]), {"at": "2026-01-01T00:00:00Z"}, True),
    # generative-computing/mellea#1493: a model that may contain itself
    ({"$ref": "#/$defs/A", "$defs": {"A": ADDRESS}}, {"city": "x"}, True),
    # openai/openai-python#2740 and pydantic/pydantic-ai#7315: a dictionary, a value of any type, a tuple,
    # a property that may be missing: strict mode has no words for them.
    (thing({"map": {"type": "object", "additionalProperties": STRING}}, ["map"]), {"map": {"a": "b"}}, False),
    (thing({"any": {"title": "Any"}}, ["any"]), {"any": 1}, False),
    (thing({"pair": {"type": "array", "prefixItems": [STRING, STRING]}}, ["pair"]), {"pair": ["a", "b"]}, False),
    (thing({"ok": STRING, "more": STRING}, ["ok"]), {"ok": "a"}, False),
    ({"type": "array", "items": STRING}, ["a"], False),
]


@pytest.mark.parametrize(("schema", "value", "strict"), ROWS, ids=range(len(ROWS)))
def test_a_schema_is_sent_in_a_form_that_the_server_takes(
    place: Place, schema: dict[str, Any], value: Any, strict: bool
) -> None:
    def play(request: Request) -> Any:
        form = request.body["text"]["format"]
        if form["strict"] and (found := faults(form["schema"])):
            return api_error(400, f"Invalid schema for response_format 'codex_output_schema': {found[0]}")
        return [say(json.dumps(value))]

    with fake_model(place, repeat(play)) as model:
        path = place.write("schema.json", json.dumps(schema))
        ended = run(place, "exec", "--output-schema", path, "go")
    assert (ended.status, json.loads(ended.out or "null")) == (0, value), ended.err
    assert [request.body["text"]["format"]["strict"] for request in model.requests] == [strict]

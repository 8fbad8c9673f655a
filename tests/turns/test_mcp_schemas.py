"""Tools with odd schemas, as servers are known to send them: each is repaired or left out alone; no request fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Json, call, say
from tests.support.home import Place
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import odd, server
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.session import watched_session

GITHUB = "https://github.com"
TEXT: Json = {"type": "string"}
TAGGED: list[Json] = [
    {"type": "object", "properties": {"kind": {"const": "a"}, "a": TEXT}, "required": ["kind", "a"]},
    {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]},
]


def params(**properties: Any) -> Json:
    """The schema of a tool with these parameters."""
    return {"type": "object", "properties": properties}


def nested(levels: int) -> Json:
    """An object in an object, so many times."""
    schema: Json = {"type": "object"}
    for _ in range(levels):
        schema = params(inner=schema)
    return schema


# Where it was seen, the schema as the server sent it, and as the model gets it.
REPAIRED: list[tuple[str, Any, Json]] = [
    (f"{GITHUB}/Kuadrant/mcp-gateway/pull/689", params(n={"type": "int"}), params(n={"type": "integer"})),
    (f"{GITHUB}/ruvnet/ruflo/issues/1294", params(ids={"type": "array"}), params(ids={"type": "array", "items": {}})),
    (
        f"{GITHUB}/Automattic/wordpress-mcp/issues/103",
        params(value={"type": ["string", "array"]}),
        params(value={"type": ["string", "array"], "items": {}}),
    ),
    (
        f"{GITHUB}/ODU33104/rive-mcp/pull/3",
        params(at={"type": "array", "items": [{"type": "number"}, TEXT], "additionalItems": False}),
        params(at={"type": "array", "items": {"anyOf": [{"type": "number"}, TEXT]}, "maxItems": 2}),
    ),
    (
        f"{GITHUB}/ScriptedAlchemy/agent-bundle/pull/580",
        params(at={"type": "array", "prefixItems": [TEXT, TEXT], "items": False, "minItems": 2}),
        params(at={"type": "array", "items": TEXT, "minItems": 2, "maxItems": 2}),
    ),
    (
        f"{GITHUB}/open-webui/computer/issues/87",
        {**params(f={"$ref": "#/$defs/F"}), "$defs": {"F": {"type": "string", "enum": ["fit", "raw"]}}},
        params(f={"type": "string", "enum": ["fit", "raw"]}),
    ),
    (
        f"{GITHUB}/agentscope-ai/QwenPaw/issues/4191",
        {
            **params(n={"$ref": "#/$defs/n"}),
            "$defs": {"n": params(all={"type": "array", "items": {"$ref": "#/$defs/n"}})},
        },
        params(n=params(all={"type": "array", "items": {}})),
    ),
    (f"{GITHUB}/PrefectHQ/fastmcp/issues/5130", params(i={"$ref": "#/components/schemas/Item"}), params(i={})),
    (
        f"{GITHUB}/anthropics/claude-code/issues/88049",
        {"anyOf": TAGGED},
        {**params(kind={"anyOf": [{"const": "a"}, {"const": "b"}]}, a=TEXT), "required": ["kind"]},
    ),
    (
        f"{GITHUB}/opentokenz/mcpx/issues/28",
        {"type": "object", "oneOf": TAGGED},
        {**params(kind={"anyOf": [{"const": "a"}, {"const": "b"}]}, a=TEXT), "required": ["kind"]},
    ),
    (
        f"{GITHUB}/evoila/meho/issues/905",
        {**params(kind=TEXT), "allOf": [{"if": params(kind={"const": "a"}), "then": {"required": ["b"]}}, TAGGED[0]]},
        {**params(kind={"anyOf": [TEXT, {"const": "a"}]}, a=TEXT), "required": ["a", "kind"]},
    ),
    (
        f"{GITHUB}/modelcontextprotocol/servers/issues/3051",
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        params(),
    ),
    (f"{GITHUB}/IvanMurzak/Unity-MCP/issues/440", None, params()),
    (f"{GITHUB}/NousResearch/hermes-agent/pull/4897", {"type": None, "properties": {"a": TEXT}}, params(a=TEXT)),
    (f"{GITHUB}/microsoft/vscode/issues/251723", {"type": "object"}, params()),
    ("`properties` and `required` of null", {"type": "object", "properties": None, "required": None}, params()),
    (f"{GITHUB}/code-yeongyu/senpi/pull/713", params(a={"type": None, "title": "A"}), params(a={"title": "A"})),
    (
        f"{GITHUB}/nolabs-ai/deepfabric/pull/559",
        params(a={"type": ["string", "null"], "format": "date", "const": "x"}),
        params(a={"type": ["string", "null"], "format": "date", "const": "x"}),
    ),
    (
        f"{GITHUB}/googleanalytics/google-analytics-mcp/issues/112",
        params(id={"anyOf": [{"type": "integer"}, TEXT], "type": "null"}),
        params(id={"anyOf": [{"type": "integer"}, TEXT]}),
    ),
    (
        f"{GITHUB}/Dokploy/mcp/issues/74",
        params(ttl={"type": "integer", "exclusiveMinimum": True, "minimum": 0}),
        params(ttl={"type": "integer", "minimum": 0}),
    ),
    ("https://json-schema.org/understanding-json-schema/basics", params(any=True, never=False), params(any={})),
    (
        "https://ai.google.dev/api/caching#Schema",
        {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
        params(a=TEXT),
    ),
]
# Where it was seen, the entry of the list, and what the user is told.
LEFT_OUT: list[tuple[str, Any, str]] = [
    (
        f"{GITHUB}/sandialabs/atlas-ui-3/issues/727",
        {"name": "odd", "inputSchema": {"type": "string"}},
        "its tool `odd` is left out: its parameters are of type `string`, and not an object",
    ),
    ("a list", {"name": "odd", "inputSchema": []}, "its tool `odd` is left out: its parameters are not a JSON object"),
    ("no name", {"inputSchema": {"type": "object"}}, "its tool without a name is left out"),
    ("no tool at all", 7, "its tool without a name is left out"),
]


def refusals(schema: Any, where: str = "") -> Iterator[str]:
    """Why OpenAI's and Anthropic's servers would refuse the parameters of a function."""
    if not where:
        assert isinstance(schema, dict)
        Draft202012Validator.check_schema(schema)
        odd_keys = {"anyOf", "oneOf", "allOf", "enum", "not"} & set(schema)
        yield from (f"`{key}` at the top level" for key in odd_keys)
        if schema.get("type") != "object" or "properties" not in schema:
            yield "not an object"
    if isinstance(schema, dict):
        if "array" in schema.get("type", ()) and not isinstance(schema.get("items"), dict):
            yield f"{where}: array schema missing items"
        if "$ref" in schema:
            yield f"{where}: a reference"
    for key, value in (
        schema.items() if isinstance(schema, dict) else enumerate(schema if isinstance(schema, list) else ())
    ):
        yield from refusals(value, f"{where}/{key}")


async def first_tools(place: Place, tools: list[Any], *options: str) -> tuple[dict[str, Json], list[str]]:
    """The parameters of a server's tools in the second request, by name, and the warnings."""
    listed = place.home / "tools.json"
    listed.write_text(json.dumps(tools))
    with FakeResponses([say("one")], [call("c", "mcp__s__good", {})], [say("two")]) as model:
        async with watched_session(place, model, odd("s", "good", f"list={listed}", *options)) as watched:
            await watched.say("one")
            ended = await watched.say("two")
    assert isinstance(ended, events.TurnCompleted)
    # Other tools of the server work.
    assert "good of " in texts(output_parts(model.requests[2].body, "c"))[0]
    shown = [tool for tool in model.requests[2].body["tools"] if tool["name"].startswith("mcp__s__")]
    found = {tool["name"].removeprefix("mcp__s__"): tool["parameters"] for tool in shown}
    assert [problem for schema in found.values() for problem in refusals(schema)] == []
    return found, warnings(watched)


GOOD: Json = {"name": "good", "inputSchema": {"type": "object", "properties": {}}}


async def test_an_odd_schema_is_repaired(place: Place) -> None:
    tools = [{"name": f"t{at:02}", "inputSchema": sent} for at, (_, sent, _) in enumerate(REPAIRED)]
    del tools[12]["inputSchema"]
    found, told = await first_tools(place, [*tools, {"name": "null", "inputSchema": None}, GOOD])
    for at, (source, _, expected) in enumerate(REPAIRED):
        assert found[f"t{at:02}"] == expected, source
    assert found["null"] == params()
    assert told == []


@pytest.mark.parametrize(("source", "entry", "line"), LEFT_OUT, ids=[source for source, _, _ in LEFT_OUT])
async def test_a_tool_that_nobody_can_call_is_left_out_alone_and_named(
    place: Place, source: str, entry: Any, line: str
) -> None:
    found, told = await first_tools(place, [entry, GOOD])
    assert (set(found), told) == ({"good"}, [f"MCP server `s`: {line}"]), source


async def test_other_odd_fields_of_a_tool_do_not_matter(place: Place) -> None:
    wrong = {"description": 7, "annotations": {"readOnlyHint": "yes"}, "icons": "x", "outputSchema": {"type": "int"}}
    odd_tool = {"name": "odd", "inputSchema": params(a=TEXT), "_meta": 3, **wrong}
    found, told = await first_tools(place, [odd_tool, {**GOOD, "outputSchema": {"type": "object", "required": ["x"]}}])
    assert (found["odd"], told) == (params(a=TEXT), [])


@pytest.mark.parametrize("levels", [60, 300])
async def test_a_deep_schema_is_cut(place: Place, levels: int) -> None:
    found, told = await first_tools(place, [{"name": "deep", "inputSchema": nested(levels)}, GOOD])
    assert found["deep"]["properties"]["inner"]["type"] == "object"
    assert told == []


async def test_references_that_grow_without_end_become_any_object(place: Place) -> None:
    defs = {f"d{at}": params(**{f"p{n}": {"$ref": f"#/$defs/d{at + 1}"} for n in range(9)}) for at in range(9)}
    found, told = await first_tools(place, [{"name": "bomb", "inputSchema": {**defs["d0"], "$defs": defs}}, GOOD])
    assert (found["bomb"], told) == ({**params(), "additionalProperties": True}, [])


async def test_half_a_character_in_an_answer_is_replaced(place: Place, tmp_path: Path) -> None:
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "half", tool_timeout_sec=5)) as watched:
            await watched.say("go")
    assert texts(output_parts(model.requests[1].body, "c")) == ["a \ufffd b \ufffd \U0001f600 \\ud83d"]


async def test_half_a_character_in_an_answer_over_http_is_replaced(place: Place) -> None:
    with McpOverHttp() as remote, FakeResponses([call("c", "mcp__s__whoami", {})], [say("done")]) as model:
        remote.text = "a \ud83d b"
        async with watched_session(place, model, server("s", url=remote.url)) as watched:
            await watched.say("go")
    assert texts(output_parts(model.requests[1].body, "c")) == ["a \ufffd b"]

"""Tools with odd schemas, as servers are known to send them: each is repaired or left out alone; no request fails."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Json, api_error, call, repeat, say
from tests.support.home import Place
from tests.support.mcp_http import McpOverHttp
from tests.support.mcp_servers import odd, server
from tests.support.mcp_turns import output_parts, texts, warnings
from tests.support.session import watched_session
from tests.support.wire_dialects import DIALECTS, Dialect

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
        f"{GITHUB}/arcadeai-labs/mcpx/issues/87",
        params(by={"type": "array", "items": TEXT, "enum": ["a", "b"]}),
        params(by={"type": "array", "items": {**TEXT, "enum": ["a", "b"]}}),
    ),
    (
        f"{GITHUB}/reportportal/reportportal-mcp-server/issues/25",
        params(modes={"type": "array", "enum": ["a"]}),
        params(modes={"type": "array", "items": {"enum": ["a"]}}),
    ),
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
    (
        f"{GITHUB}/MervinPraison/PraisonAI/issues/3111",
        {"type": "object", "properties": None, "required": None},
        params(),
    ),
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
    (f"{GITHUB}/inngest/inngest/issues/3305", params(any=True, never=False), params(any={})),
    (f"{GITHUB}/karakeep-app/karakeep/issues/1831", True, params()),
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
    (
        f"{GITHUB}/openai/openai-agents-python/pull/4151",
        {"name": "odd", "inputSchema": {"type": "array", "items": TEXT}},
        "its tool `odd` is left out: its parameters are of type `array`, and not an object",
    ),
]
# Entries of a list that no report names, and what the user is told.
NO_TOOLS: list[tuple[Any, str]] = [
    ({"name": "odd", "inputSchema": []}, "its tool `odd` is left out: its parameters are not a JSON object"),
    ({"inputSchema": {"type": "object"}}, "its tool without a name is left out"),
    (7, "its tool without a name is left out"),
    ({"name": "x" * 300}, f"its tool `{'x' * 100}` is left out: its name is over 256 long"),
]
# Where it was seen, the names of parameters that Anthropic refuses, and what the model sees.
NAMES: list[tuple[str, list[str], list[str]]] = [
    (f"{GITHUB}/rhesis-ai/rhesis/pull/2007", ["$filter", "$select"], ["_filter", "_select"]),
    (
        f"{GITHUB}/ComposioHQ/composio/issues/3500",
        ["$top", "@microsoft.graph.conflictBehavior"],
        ["_microsoft.graph.conflictBehavior", "_top"],
    ),
    (
        f"{GITHUB}/ComposioHQ/composio/issues/2330",
        ["settings__approved__or__denied__countries__or__regions__approved__list"],
        ["settings__approved__or__denied__countries__or__regions__"],
    ),
    (f"{GITHUB}/beautyfree/appstore-connect-mcp/issues/2", ["filter[id]", "filter.id"], ["filter.id", "filter_id_"]),
    (f"{GITHUB}/erikmaday/unusual-whales-mcp/pull/57", ["issue_types[]"], ["issue_types__"]),
    (f"{GITHUB}/rootlyhq/rootly-mcp-server/pull/15", ["page[size]", "page"], ["page", "page_size_"]),
    (f"{GITHUB}/twilio-labs/mcp/issues/55", ["StartTime", "StartTime<", "StartTime>"], ["StartTime"] * 3),
    (f"{GITHUB}/freee/freee-mcp/issues/35", ["取引先", "金額"], ["__", "___"]),
    (f"{GITHUB}/roychri/mcp-server-asana/issues/16", ["projects.any"], ["projects.any"]),
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
    del tools[14]["inputSchema"]
    found, warnings = await first_tools(place, [*tools, {"name": "null", "inputSchema": None}, GOOD])
    for at, (source, _, expected) in enumerate(REPAIRED):
        assert found[f"t{at:02}"] == expected, source
    assert found["null"] == params()
    assert warnings == []


@pytest.mark.parametrize(("source", "entry", "line"), LEFT_OUT, ids=[source for source, _, _ in LEFT_OUT])
async def test_a_tool_that_nobody_can_call_is_left_out_alone_and_named(
    place: Place, source: str, entry: Any, line: str
) -> None:
    found, warnings = await first_tools(place, [entry, GOOD])
    assert (set(found), warnings) == ({"good"}, [f"MCP server `s`: {line}"]), source


@pytest.mark.parametrize(("entry", "line"), NO_TOOLS)
async def test_an_entry_that_is_no_tool_is_left_out_alone_and_named(place: Place, entry: Any, line: str) -> None:
    found, warnings = await first_tools(place, [entry, GOOD])
    assert (set(found), warnings) == ({"good"}, [f"MCP server `s`: {line}"])


@pytest.mark.parametrize(("source", "names", "shown"), NAMES, ids=[source for source, _, _ in NAMES])
@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
async def test_parameters_have_names_that_every_api_takes_and_calls_the_servers_own(
    place: Place, source: str, names: list[str], shown: list[str], wire: Dialect
) -> None:
    # In the arguments themselves, and in a list of objects inside them.
    inner = {"type": "object", "properties": dict.fromkeys(names, TEXT), "required": names}
    schema = {**inner, "properties": {**inner["properties"], "all": {"type": "array", "items": inner}}}
    place.home.joinpath("tools.json").write_text(json.dumps([{"name": "odd", "inputSchema": schema}]))
    log = place.home / "log"

    def calls(request: Any) -> Any:
        [tool] = [tool for tool in tools_of(request.body) if tool["name"] == "mcp__s__odd"]
        known = tool["properties"]["all"]["items"]
        seen = sorted(known["properties"])
        assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in [*seen, *tool["properties"]])
        assert [name[: len(start)] for name, start in zip(seen, shown, strict=True)] == shown, source
        assert (sorted(known["required"]), sorted(tool["required"])) == (seen, seen)
        values = {name: str(at) for at, name in enumerate(seen)}
        return wire.answer("", [("c", "mcp__s__odd", {**values, "all": [values]})])

    with wire.server(calls, wire.say("done")) as model:
        options = (f"list={place.home}/tools.json", f"log={log}")
        async with watched_session(
            place, model, odd("s", "good", *options), overrides=("model=some-model",), wire_api=wire.wire
        ) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted), model.requests
    [sent] = [
        line["params"]["arguments"]
        for line in map(json.loads, log.read_text().splitlines())
        if line["method"] == "tools/call"
    ]
    assert set(sent) == {*names, "all"}
    assert sent["all"] == [{name: sent[name] for name in names}]


# Where it was seen, and the words of a server about a tool that it does not take: its place or its name.
REFUSED: list[tuple[str, str]] = [
    (
        f"{GITHUB}/getsentry/sentry-mcp/issues/106",
        "Invalid 'tools[{at}].function.description': string too long. Expected a string with maximum length 1024, but "
        "got a string with length 1103 instead.",
    ),
    (
        f"{GITHUB}/kintone/mcp-server/issues/547",
        "tools.{at}.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.",
    ),
    (
        f"{GITHUB}/langchain-ai/langchainjs/issues/9804",
        "Invalid schema for function '{name}': schema must have type 'object' and not have 'oneOf' at the top level.",
    ),
    (
        f"{GITHUB}/google-gemini/gemini-cli/issues/4415",
        "Invalid value at 'request.tools[0].function_declarations[{at}].parameters.properties[16].value.enum[3]'",
    ),
    (
        f"{GITHUB}/reportportal/reportportal-mcp-server/issues/25",
        "Unable to submit request because {name} functionDeclaration parameters.modes schema specified incorrect "
        "schema type field.",
    ),
    (
        f"{GITHUB}/promptfoo/promptfoo/issues/5960",
        "Invalid schema for function '{name}': 'object' is not of type 'object', 'boolean'.",
    ),
]


@pytest.mark.parametrize(("source", "words"), REFUSED, ids=[source for source, _ in REFUSED])
@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
async def test_a_tool_that_the_model_server_refuses_is_left_out_alone_and_named(
    place: Place, source: str, words: str, wire: Dialect
) -> None:
    def play(request: Any) -> Any:
        names = [tool["name"] for tool in tools_of(request.body)]
        if "mcp__s__bad" in names:
            return api_error(400, words.format(at=names.index("mcp__s__bad"), name="mcp__s__bad"))
        assert "mcp__s__good" in names
        return wire.say("done")

    model = wire.server(repeat(play), excuse={"prefix", "head", "messages", "replay", "tools"})
    with model:
        async with watched_session(
            place, model, odd("s", "good", "tools=bad,good"), overrides=("model=some-model",), wire_api=wire.wire
        ) as watched:
            ended = [await watched.say(text) for text in ("one", "two")]
    assert [type(event) for event in ended] == [events.TurnCompleted] * 2, source
    [line] = [line for line in warnings(watched) if "left out" in line]
    assert line.startswith("`mcp__s__bad` is left out of this session, because the model server has refused it: ")
    # Refused once, and never sent again.
    assert len(model.requests) == 3


def tools_of(body: Json) -> list[Json]:
    """The tools of a request on any wire: the name and the schema of the parameters."""
    found = [tool.get("function", tool) for tool in body["tools"]]
    return [{"name": tool["name"], **tool.get("parameters", tool.get("input_schema", {}))} for tool in found]


async def test_other_odd_fields_of_a_tool_do_not_matter(place: Place) -> None:
    wrong = {"description": 7, "annotations": {"readOnlyHint": "yes"}, "icons": "x", "outputSchema": {"type": "int"}}
    odd_tool = {"name": "odd", "inputSchema": params(a=TEXT), "_meta": 3, **wrong}
    found, warnings = await first_tools(
        place, [odd_tool, {**GOOD, "outputSchema": {"type": "object", "required": ["x"]}}]
    )
    assert (found["odd"], warnings) == (params(a=TEXT), [])


@pytest.mark.parametrize("levels", [60, 300])
async def test_a_deep_schema_is_cut(place: Place, levels: int) -> None:
    found, warnings = await first_tools(place, [{"name": "deep", "inputSchema": nested(levels)}, GOOD])
    assert (20 < json.dumps(found["deep"]).count("inner") < 40, warnings) == (True, [])


async def test_references_that_grow_without_end_become_any_object(place: Place) -> None:
    defs = {f"d{at}": params(**{f"p{n}": {"$ref": f"#/$defs/d{at + 1}"} for n in range(9)}) for at in range(9)}
    found, warnings = await first_tools(place, [{"name": "bomb", "inputSchema": {**defs["d0"], "$defs": defs}}, GOOD])
    assert (found["bomb"], warnings) == ({**params(), "additionalProperties": True}, [])


# Where it was seen, the result of a call, and the texts that the model reads.
ODD_RESULTS: list[tuple[str, Json, list[str]]] = [
    (
        f"{GITHUB}/usememos/memos/issues/6049",
        {"content": [{"type": "text", "text": "a"}], "structuredContent": [1, 2]},
        ["a", "[1,2]"],
    ),
    (
        f"{GITHUB}/modelcontextprotocol/python-sdk/issues/1796",
        {"structuredContent": {"n": 1}},
        ['{"n":1}'],
    ),
    (f"{GITHUB}/cloudflare/mcp-server-cloudflare/issues/12", {"toolResult": {"n": 1}}, ['{"toolResult":{"n":1}}']),
    (f"{GITHUB}/samihalawa/mcp-server-smtp/pull/4", {"success": True}, ['{"success":true}']),
    (f"{GITHUB}/GopherSecurity/gopher-mcp/issues/202", {"content": "Hello", "isError": False}, ["Hello"]),
    (
        f"{GITHUB}/calebl/ynab-mcp-server/issues/31",
        {"content": [{"type": "error", "text": "no"}]},
        ['{"type":"error","text":"no"}'],
    ),
    (
        f"{GITHUB}/use-agent-os/agent-os/pull/2249",
        {"content": [{"type": "widget", "n": 1}, {"type": "text", "text": "a", "annotations": None}]},
        ['{"type":"widget","n":1}', "a"],
    ),
    (
        f"{GITHUB}/BerriAI/litellm/pull/36920",
        {"content": [{"type": "resource", "resource": {"uri": "a/b", "text": "r"}}, {"type": "text", "text": "a"}]},
        ["r", "a"],
    ),
    (f"{GITHUB}/mark3labs/mcp-go/pull/819", {"content": ["b", 7]}, ["b", "7"]),
    (
        f"{GITHUB}/modelcontextprotocol/python-sdk/issues/1378",
        {"content": None, "structuredContent": {"n": 1}, "isError": None},
        ['{"n":1}'],
    ),
    (
        "a picture without a type, beside a link without a name",
        {"content": [{"type": "image", "data": "!"}, {"type": "resource_link", "uri": "x://y"}]},
        ["[picture, : not shown", "[resource x://y: ]"],
    ),
]


@pytest.mark.parametrize(("source", "result", "read"), ODD_RESULTS, ids=range(len(ODD_RESULTS)))
async def test_an_odd_part_of_an_answer_does_not_spoil_the_rest(
    place: Place, source: str, result: Json, read: list[str]
) -> None:
    place.home.joinpath("answer.json").write_text(json.dumps(result))
    with FakeResponses([call("c", "mcp__s__reads", {})], [say("done")]) as model:
        async with watched_session(place, model, odd("s", "good", f"answer={place.home}/answer.json")) as watched:
            await watched.say("go")
    found = texts(output_parts(model.requests[1].body, "c"))
    assert len(found) == len(read), found
    assert [text for text, words in zip(found, read, strict=True) if not text.startswith(words)] == [], source


async def test_an_odd_prompt_is_left_out_alone(place: Place) -> None:
    prompts = [{"name": "good", "arguments": None}, {"name": 7}, "x", {"name": "odd", "arguments": [{"name": "a"}, 1]}]
    place.home.joinpath("prompts.json").write_text(json.dumps(prompts))
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, odd("s", "good", f"prompts={place.home}/prompts.json")) as watched:
            await watched.say("go")
            names = [prompt.name for prompt in watched.session.mcp.prompts()]
    assert names == ["mcp__s__good", "mcp__s__odd"]
    assert warnings(watched) == ["MCP server `s`: prompts without a usable name are left out: 2"]


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

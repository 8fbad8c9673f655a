"""Requests of the Messages API: exact bodies, by the rules of a strict server, each a prefix of the next."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import ItemDone, Prompt
from codex_py.model.providers import Provider
from codex_py.model.wires.messages import MessagesWire
from codex_py.model.wires.messages_thinking import claude_version, supported_schema
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem, ToolCall, call_output, message, message_of_content
from codex_py.protocol.origin import Origin, with_origin
from tests.support.messages_rules import Past, find_problems

MODEL = "claude-opus-5-5"
PROVIDER = Provider("anthropic", "Anthropic", "https://x/v1", wire_api="messages", api_key_env="KEY")
TOOL = {"type": "function", "name": "run", "description": "d", "strict": False, "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "apply_patch", "description": "p", "format": {"type": "grammar"}}


def prompt(*history: ResponseItem, **changes: Any) -> Prompt:
    base = Prompt(
        model=MODEL,
        instructions="be kind",
        input=[item.encoded for item in history],
        tools=encode_json([TOOL]),
        thread_id="t",
        turn_id="u",
        max_output_tokens=20_000,
    )
    return base.replace(**changes)


def sent(request: Prompt, wire: MessagesWire | None = None) -> dict[str, Any]:
    return json.loads((wire or MessagesWire(PROVIDER)).encode(request))


def item(**fields: Any) -> ResponseItem:
    return ResponseItem.from_wire(fields)


def call(call_id: str, arguments: str = "{}", name: str = "run") -> ResponseItem:
    return item(type="function_call", call_id=call_id, name=name, arguments=arguments)


def output(call_id: str, content: Any, *, failed: bool = False) -> ResponseItem:
    return call_output(ToolCall(call_id, "", ""), content, failed=failed)


def thought(text: str, *, model: str = MODEL, provider: str = "anthropic", **fields: Any) -> ResponseItem:
    summary = [{"type": "summary_text", "text": text}] if text else []
    made = item(type="reasoning", summary=summary, encrypted_content=f"sig {text}", **fields)
    return with_origin(made, Origin(provider, model, "messages"))


def contents(body: dict[str, Any]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The messages without the marks of the cache."""
    bare = json.loads(json.dumps(body["messages"]).replace(', "cache_control": {"type": "ephemeral"}', ""))
    return [(one["role"], one["content"]) for one in bare]


def test_the_whole_body_stands_in_one_fixed_order() -> None:
    body = MessagesWire(PROVIDER).encode(prompt(message("developer", "rules"), message("user", "hi"), effort="high"))
    assert body == (
        b'{"model":"claude-opus-5-5","system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}],'
        b'"messages":[{"role":"user","content":[{"type":"text","text":"rules"},{"type":"text","text":"hi",'
        b'"cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"run","description":"d","input_schema":'
        b'{"type":"object"}}],"tool_choice":{"type":"auto"},"max_tokens":20000,"stream":true,'
        b'"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"}}'
    )


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "output"),
    [
        (MODEL, None, "adaptive", None),
        (MODEL, "minimal", "adaptive", "low"),
        (MODEL, "xhigh", "adaptive", "xhigh"),
        (MODEL, "ultra", "adaptive", "max"),
        (MODEL, "none", None, "low"),
        ("claude-opus-4-6", "xhigh", "adaptive", "high"),
        ("claude-opus-4-6", "max", "adaptive", "max"),
        ("claude-sonnet-4-6", "max", "adaptive", "high"),
        ("claude-sonnet-4-5-20250929", "medium", 10_000, None),
        ("claude-sonnet-4-5-20250929", "max", 15_000, None),
        ("claude-sonnet-4-5-20250929", None, None, None),
        ("claude-3-5-haiku-latest", "high", None, None),
        ("kimi-k2-thinking", "low", 4096, None),
        ("kimi-k2-thinking", None, None, None),
    ],
)
def test_an_effort_becomes_what_the_model_understands(
    model: str, effort: str | None, thinking: str | int | None, output: str | None
) -> None:
    body = sent(prompt(message("user", "hi"), model=model, effort=effort))
    setting = body.get("thinking", {})
    assert (setting.get("budget_tokens", setting.get("type")), body.get("output_config", {}).get("effort")) == (
        thinking,
        output,
    )


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-4-5-20251101", (4, 5)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("anthropic/claude-opus-4.7", (4, 7)),
        ("us.anthropic.claude-opus-4-6-v1", (4, 6)),
        ("claude-haiku-4-5@20251001", (4, 5)),
        ("claude-3-7-sonnet-latest", (3, 7)),
        ("claude-fable-5-1", (5, 1)),
        ("claude-next", (99, 0)),
        ("gpt-5", None),
    ],
)
def test_the_version_is_read_from_every_form_of_a_name(name: str, version: Any) -> None:
    assert claude_version(name) == version


def test_thinking_with_a_budget_is_left_out_where_the_answer_under_way_began_without() -> None:
    history = [message("user", "hi"), call("c1"), output("c1", "done")]
    old = "claude-sonnet-4-5"
    wire = MessagesWire(PROVIDER)
    first = prompt(*history, model=old, effort="high")
    assert "thinking" not in sent(first, wire)
    assert "anthropic-beta" not in wire.headers(first)
    later = prompt(*history, message("user", "more"), model=old, effort="high")
    began = prompt(
        message("user", "hi"), thought("hm", model=old), call("c1"), output("c1", "x"), model=old, effort="low"
    )
    assert "thinking" not in sent(later, wire)
    assert sent(began, wire)["thinking"] == {"type": "enabled", "budget_tokens": 4096}
    assert wire.headers(began)["anthropic-beta"] == "interleaved-thinking-2025-05-14"


def test_only_thinking_of_the_same_model_and_provider_goes_back_as_it_was() -> None:
    history = [
        message("user", "hi"),
        thought("mine"),
        thought("", redacted=True),
        thought("older", model="claude-opus-4-8"),
        thought("theirs", provider="proxy"),
        item(type="reasoning", summary=[], encrypted_content="of another wire"),
        call("c1"),
        output("c1", "x"),
    ]
    body = sent(prompt(*history))
    assert contents(body)[1] == (
        "assistant",
        [
            {"type": "thinking", "thinking": "mine", "signature": "sig mine"},
            {"type": "redacted_thinking", "data": "sig "},
            {"type": "tool_use", "id": "c1", "name": "run", "input": {}},
        ],
    )


def test_results_hold_texts_and_pictures() -> None:
    picture = {"type": "input_image", "image_url": "data:image/jpg;base64,AAAA"}
    linked = {"type": "input_image", "image_url": "https://x/y.png"}
    odd = {"type": "input_image", "image_url": "data:image/tiff;base64,AAAA"}
    parts = [{"type": "input_text", "text": "look"}, picture]
    history = [
        message_of_content("user", [linked, odd, {"type": "input_text", "text": " "}]),
        call("c1"),
        call("c2"),
        output("c1", parts),
        output("c2", ""),
    ]
    source = {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}
    assert contents(sent(prompt(*history))) == [
        (
            "user",
            [
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}},
                {"type": "text", "text": "[a picture that this model cannot be shown]"},
            ],
        ),
        (
            "assistant",
            [
                {"type": "tool_use", "id": "c1", "name": "run", "input": {}},
                {"type": "tool_use", "id": "c2", "name": "run", "input": {}},
            ],
        ),
        (
            "user",
            [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}],
                },
                {"type": "tool_result", "tool_use_id": "c2"},
            ],
        ),
    ]


def test_the_result_of_a_failed_call_is_text_and_its_pictures_follow_all_results() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    history = [
        message("user", "hi"),
        call("c1"),
        call("c2"),
        call("c3"),
        output("c1", [{"type": "input_text", "text": "no such page"}, picture], failed=True),
        output("c2", [picture], failed=True),
        output("c3", " ", failed=True),
    ]
    request = prompt(*history)
    body = sent(request)
    assert find_problems(body, MessagesWire(PROVIDER).encode(request), Past()) == []
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    result = {"type": "tool_result", "is_error": True}
    assert contents(body)[-1] == (
        "user",
        [
            {**result, "tool_use_id": "c1", "content": "no such page"},
            {**result, "tool_use_id": "c2", "content": "(no text)"},
            {**result, "tool_use_id": "c3", "content": "(no text)"},
            image,
            image,
        ],
    )


def test_a_freeform_tool_is_a_function_and_its_earlier_calls_are_calls_of_it() -> None:
    earlier = item(type="custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin")
    done = item(type="custom_tool_call_output", call_id="c1", output="ok")
    body = sent(prompt(message("user", "hi"), earlier, done, tools=encode_json([PATCH])))
    [tool] = body["tools"]
    assert (tool["name"], list(tool["input_schema"]["properties"])) == ("apply_patch", ["input"])
    assert contents(body)[1][1][0]["input"] == {"input": "*** Begin"}


@pytest.mark.parametrize("call_id", ["fc:1/ä", "x" * 70, "a b", "\ud800"])
def test_ids_that_the_api_does_not_take_are_replaced_in_the_same_way_each_time(call_id: str) -> None:
    history = [message("user", "hi"), call(call_id), output(call_id, "x")]
    first, second = sent(prompt(*history)), sent(prompt(*history))
    assert first == second
    assert find_problems(first, json.dumps(first).encode(), Past()) == []


def test_parallel_calls_can_be_forbidden_and_tools_left_out() -> None:
    assert sent(prompt(message("user", "hi"), parallel_tool_calls=False))["tool_choice"] == {
        "type": "auto",
        "disable_parallel_tool_use": True,
    }
    assert not {"tools", "tool_choice"} & set(sent(prompt(message("user", "hi"), tools=b"[]")))


def test_a_schema_is_sent_as_the_api_knows_it_or_as_an_instruction() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}}, "required": ["n"]}
    closed = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    ours = prompt(message("user", "hi"), output_schema=encode_json(schema))
    assert sent(ours)["output_config"]["format"] == {"type": "json_schema", "schema": closed}
    other = sent(ours.replace(model="kimi-k2"))
    assert "output_config" not in other
    assert '"minimum":3' in other["system"][-1]["text"]
    assert supported_schema(MODEL, {"type": "object", "additionalProperties": {"type": "string"}}) is None


@pytest.mark.parametrize(
    ("model", "refusal", "left_out", "stays"),
    [
        (MODEL, "output_config.effort: not supported", "effort", "format"),
        (MODEL, "output_config.format: Extra inputs are not permitted", "format", "effort"),
        (MODEL, "thinking.adaptive.display: Extra inputs are not permitted", "display", "adaptive"),
        (MODEL, "adaptive thinking is not supported on this model", "adaptive", "enabled"),
        ("kimi", 'Use "thinking.type.adaptive" and "output_config.effort"', "enabled", "adaptive"),
        (MODEL, "messages.1.content.0: Invalid `signature` in `thinking` block", "sig hm", "adaptive"),
        (MODEL, "system.0.cache_control: Extra inputs are not permitted", "cache_control", "adaptive"),
    ],
)
def test_what_a_server_refuses_is_left_out_from_then_on(model: str, refusal: str, left_out: str, stays: str) -> None:
    wire = MessagesWire(PROVIDER)
    schema = encode_json({"type": "object", "properties": {}})
    history = [message("user", "hi"), thought("hm", model=model), call("c1"), output("c1", "x")]
    request = prompt(*history, model=model, effort="high", output_schema=schema)
    assert left_out.encode() in wire.encode(request)
    assert wire.adapt(400, ModelError(refusal, retryable=False))
    assert left_out.encode() not in wire.encode(request)
    assert stays.encode() in wire.encode(request)
    assert not wire.adapt(400, ModelError("tools.3: something else", retryable=False))
    assert not wire.adapt(500, ModelError(refusal, retryable=False))


def test_histories_of_every_kind_make_requests_that_the_api_takes_and_that_extend_each_other() -> None:
    for seed in range(150):
        chance = random.Random(seed)
        wire, past, history = MessagesWire(PROVIDER), Past(), list[ResponseItem]()
        for _ in range(chance.randrange(1, 12)):
            history += random_items(chance)
            request = prompt(*history, effort=chance.choice([None, "high"]))
            raw = wire.encode(request)
            body = json.loads(raw)
            thoughts = [json.loads(one.encoded) for one in history if one.type == "reasoning"]
            past.sent_thinking[MODEL] = [
                {"type": "thinking", "thinking": one["summary"][0]["text"], "signature": one["encrypted_content"]}
                for one in thoughts
            ]
            assert find_problems(body, raw, past) == [], seed
            past.last, past.last_body = body, raw


def random_items(chance: random.Random) -> list[ResponseItem]:
    """What one request adds to a history, whole answers and broken ones, ids that repeat, and nothing at all."""
    added: list[ResponseItem] = []
    calls: list[str] = []
    for _ in range(chance.randrange(4)):
        match chance.randrange(4):
            case 0:
                added.append(thought(f"t{chance.random()}"))
            case 1:
                added.append(
                    message_of_content("assistant", [{"type": "output_text", "text": chance.choice(["a", "b "])}])
                )
            case 2:
                calls.append(chance.choice(["call_0", "call_1", "ä", f"c{chance.random()}"]))
                added.append(call(calls[-1], chance.choice(["{}", '{"a": "é"}', '{"a', "[]"])))
            case _:
                added.append(item(type="web_search_call", id="w", action={}))
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    for call_id in calls:
        content = chance.choice(["", "x", [picture], [{"type": "input_text", "text": "y"}, picture]])
        added.append(output(call_id, content, failed=chance.random() < 0.3))
    if chance.random() < 0.5:
        added.append(message(chance.choice(["user", "developer"]), chance.choice(["hi", " ", "ho"])))
    return added


def answered_call(call_id: str, name: str) -> list[str]:
    """The stream of an answer with a call without arguments."""
    block: dict[str, Any] = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    ]
    return [encode_json(event).decode() for event in events]


def test_an_answer_is_read_with_the_tools_and_the_calls_of_its_own_thread() -> None:
    wire = MessagesWire(PROVIDER)
    server = {"type": "namespace", "name": "mcp__files", "tools": [{**TOOL, "name": "read"}]}
    mine = prompt(message("user", "hi"), call("c1"), output("c1", "x"), tools=encode_json([server]))
    wire.encode(mine)
    decoder = wire.decoder(mine)
    wire.encode(prompt(message("user", "work"), thread_id="agent"))
    events = [event for data in answered_call("c1", "mcp__files__read") for event in decoder.decode(data)]
    [done] = [event.item.decode() for event in events if isinstance(event, ItemDone)]
    assert (done["namespace"], done["name"]) == ("mcp__files", "read")
    # A server that starts counting in each answer: the history has that id already.
    assert done["call_id"] not in ("", "c1")

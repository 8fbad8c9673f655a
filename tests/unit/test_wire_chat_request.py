"""Requests of the Chat Completions API: exact bodies, each a prefix of the next, and what each server takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import Prompt
from codex_py.model.providers import HOSTED, Provider
from codex_py.model.wires.chat import ChatWire
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.origin import Origin, with_origin
from tests.support.chat_rules import Dialect, Past, find_problems, messages_bytes

TOOLS = [
    {
        "type": "function",
        "name": "run",
        "description": "Runs.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
    {"type": "custom", "name": "apply_patch", "description": "Patches.", "format": {"type": "grammar"}},
    {"type": "web_search"},
]
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "high"}


def wire(provider: str = "fake", base_url: str = "https://models.example/v1") -> ChatWire:
    hosted = HOSTED.get(provider)
    return ChatWire(Provider(provider, provider, hosted.base_url if hosted else base_url, wire_api="chat"))


def message(role: str, text: str, *more: Any) -> bytes:
    part = "output_text" if role == "assistant" else "input_text"
    return encode_json({"type": "message", "role": role, "content": [{"type": part, "text": text}, *more]})


def call(call_id: str, name: str = "run") -> bytes:
    return encode_json({"type": "function_call", "name": name, "arguments": '{"x": 1}', "call_id": call_id})


def output(call_id: str, content: Any = "ok") -> bytes:
    return encode_json({"type": "function_call_output", "call_id": call_id, "output": content})


def reasoning(provider: str, model: str = "m", **fields: Any) -> bytes:
    item = ResponseItem.from_wire({"type": "reasoning", "summary": [], **fields})
    return with_origin(item, Origin(provider, model, "chat")).encoded


def prompt(*items: bytes, **changes: Any) -> Prompt:
    base = Prompt("m", "Be brief.", list(items), encode_json(TOOLS), "thread", "turn")
    return base.replace(**changes)


def body(*items: bytes, provider: str = "fake", **changes: Any) -> dict[str, Any]:
    return json.loads(wire(provider).encode(prompt(*items, **changes)))


ITEMS = (
    message("developer", "rules"),
    message("user", "context"),
    message("user", "go"),
    message("assistant", "I look."),
    call("a"),
    call("b"),
    output("a", "one"),
    output("b", [{"type": "input_text", "text": "two"}, PICTURE]),
    message("developer", "the date has changed"),
    message("assistant", "done"),
)


def test_the_whole_body_for_a_server_that_is_not_known() -> None:
    def function(name: str, description: str, properties: Any, **more: Any) -> dict[str, Any]:
        parameters = {"type": "object", "properties": properties, **more}
        return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

    def called(call_id: str) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "run", "arguments": '{"x": 1}'}}

    text = {"type": "string", "description": "The whole input of the tool."}
    assert body(*ITEMS, max_output_tokens=100) == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief.\n\nrules"},
            {"role": "user", "content": "context"},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "I look.", "tool_calls": [called("a"), called("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "one"},
            {"role": "tool", "tool_call_id": "b", "content": "two"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "The pictures in the output of the tools above:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "high"}},
                ],
            },
            {"role": "user", "content": "the date has changed"},
            {"role": "assistant", "content": "done"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [
            function("run", "Runs.", {"x": {"type": "integer"}}),
            function("apply_patch", "Patches.", {"input": text}, required=["input"], additionalProperties=False),
        ],
        "tool_choice": "auto",
        "max_tokens": 100,
    }


@pytest.mark.parametrize("provider", ["fake", "mistral", "deepseek", "llamacpp", "openrouter", "gemini"])
def test_each_request_extends_the_one_before(provider: str) -> None:
    sender, before = wire(provider), b""
    for count in range(1, len(ITEMS) + 1):
        if ITEMS[count - 1].startswith(b'{"type":"function_call"'):
            continue  # Calls are answered before the next request.
        raw = sender.encode(prompt(*ITEMS[:count]))
        assert messages_bytes(raw).startswith(before)
        before = messages_bytes(raw)


def test_the_threads_of_a_session_and_its_agents_do_not_disturb_each_other() -> None:
    sender = wire("llamacpp")
    before = {"one": b"", "two": b""}
    for count in range(3, len(ITEMS) + 1):
        for thread in before:
            if ITEMS[count - 1].startswith(b'{"type":"function_call"'):
                continue
            raw = sender.encode(prompt(*ITEMS[:count], instructions=thread, thread_id=thread))
            assert messages_bytes(raw).startswith(before[thread])
            before[thread] = messages_bytes(raw)


@pytest.mark.parametrize("provider", ["fake", "vllm", "mistral", "llamacpp"])
def test_no_server_is_sent_what_it_refuses(provider: str) -> None:
    alternates = provider != "fake"
    dialect = Dialect(alternates=alternates, id_pattern="[a-zA-Z0-9]{9}" if provider == "mistral" else ".{1,40}")
    raw = wire(provider).encode(prompt(*ITEMS))
    assert find_problems(json.loads(raw), raw, Past(), dialect) == []


def test_what_only_some_servers_take() -> None:
    user = message("user", "go")
    schema: dict[str, Any] = {
        "output_schema": b'{"type":"object"}',
        "effort": "high",
        "max_output_tokens": 9,
        "verbosity": "low",
    }
    openai = json.loads(wire("x", "https://api.openai.com/v1").encode(prompt(user, **schema)))
    assert openai["prompt_cache_key"] == "thread"
    assert (openai["max_completion_tokens"], openai["reasoning_effort"], openai["verbosity"]) == (9, "high", "low")
    assert openai["parallel_tool_calls"] is True
    openrouter = body(user, provider="openrouter", **schema)
    assert openrouter["reasoning"] == {"effort": "high"}
    mistral = body(user, provider="mistral", **schema)
    assert not {"stream_options", "reasoning_effort", "prompt_cache_key", "verbosity"} & set(mistral)
    deepseek = body(user, provider="deepseek", **schema)
    assert deepseek["response_format"] == {"type": "json_object"}
    assert '{"type":"object"}' in deepseek["messages"][0]["content"]
    gemini = body(user, provider="gemini", **schema)
    assert "response_format" not in gemini
    assert '{"type":"object"}' in gemini["messages"][0]["content"]
    assert body(user, parallel_tool_calls=False)["parallel_tool_calls"] is False
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body(user, tools=b"[]"))


@pytest.mark.parametrize(
    ("model", "marks"),
    [("gemini-3-pro-preview", [True, False]), ("gemini-flash-latest", [True, False]), ("gemini-2.5-pro", [False] * 2)],
)
def test_calls_of_another_model_are_marked_for_a_gemini_that_wants_signatures(model: str, marks: list[bool]) -> None:
    history = [message("user", "go"), call("a"), call("b"), output("a"), output("b")]
    calls = body(*history, provider="gemini", model=model)["messages"][2]["tool_calls"]
    mark = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert [one.get("extra_content") == mark for one in calls] == marks
    assert "extra_content" not in json.dumps(body(*history, provider="fake", model=model))


def test_reasoning_goes_back_to_its_own_model_in_the_form_that_it_takes() -> None:
    thought: dict[str, Any] = {"content": [{"type": "reasoning_text", "text": "Hm."}]}
    details: Any = [{"type": "reasoning.text", "text": "Hm.", "signature": "s"}]
    extra = {"a": {"extra_content": {"google": {"thought_signature": "sig"}}}}

    def answer(provider: str, item: bytes) -> dict[str, Any]:
        return body(message("user", "go"), item, call("a"), output("a"), provider=provider)["messages"][2]

    assert answer("deepseek", reasoning("deepseek", **thought))["reasoning_content"] == "Hm."
    assert answer("deepseek", reasoning("deepseek", "other", **thought))["reasoning_content"] == ""
    assert answer("deepseek", reasoning("openrouter", **thought))["reasoning_content"] == ""
    assert answer("openrouter", reasoning("openrouter", details=details))["reasoning_details"] == details
    assert "reasoning_details" not in answer("openrouter", reasoning("deepseek", details=details))
    [signed] = answer("gemini", reasoning("gemini", calls=extra))["tool_calls"]
    assert signed["extra_content"] == {"google": {"thought_signature": "sig"}}
    [unsigned] = answer("gemini", reasoning("gemini", "other", calls=extra))["tool_calls"]
    assert "extra_content" not in unsigned
    # Servers that are not known get it in the field that they have sent it in.
    plain = {"role", "content", "tool_calls"}
    for field in ("reasoning_content", "reasoning"):
        assert answer("fake", reasoning("fake", **thought, field=field))[field] == "Hm."
        assert set(answer("fake", reasoning("fake", "other", **thought, field=field))) == plain
        assert set(answer("other", reasoning("fake", **thought, field=field))) == plain
        assert set(answer("groq", reasoning("groq", **thought, field=field))) == plain
    assert answer("fake", reasoning("fake", **thought, field="<think>"))["content"] == "<think>\nHm.</think>\n\n"
    assert set(answer("fake", reasoning("fake", **thought))) == plain


def test_the_reasoning_of_a_finished_answer_and_what_is_refused_do_not_go_back() -> None:
    thought = reasoning("fake", content=[{"type": "reasoning_text", "text": "Hm."}], field="reasoning_content")
    finished = body(message("user", "go"), thought, message("assistant", "done"), message("user", "on"))
    assert [set(each) for each in finished["messages"]] == [{"role", "content"}] * 4
    sender = wire()
    given_prompt = prompt(message("user", "go"), thought, call("a"), output("a"))
    assert b"Hm." in sender.encode(given_prompt)
    assert sender.adapt(400, ModelError("property 'reasoning_content' is unsupported", retryable=False))
    assert b"Hm." not in sender.encode(given_prompt)


@pytest.mark.parametrize("provider", ["deepseek", "mistral", "groq", "gemini", "openrouter"])
def test_a_built_in_provider_is_known_at_any_address(provider: str) -> None:
    moved = ChatWire(Provider(provider, provider, "http://127.0.0.1:1/v1", wire_api="chat"))
    given_prompt = prompt(*ITEMS, output_schema=b'{"type":"object"}', effort="high", max_output_tokens=9)
    assert moved.encode(given_prompt) == wire(provider).encode(given_prompt)


def test_a_model_that_cannot_see_is_sent_no_picture() -> None:
    sent = json.dumps(body(*ITEMS, message("user", "look", PICTURE), pictures=False))
    assert "image_url" not in sent
    assert "[a picture that you cannot see]" in sent


@pytest.mark.parametrize(
    ("refusal", "field"),
    [
        ("Unrecognized request argument supplied: parallel_tool_calls", "parallel_tool_calls"),
        ("stream_options: Extra inputs are not permitted", "stream_options"),
        ("unknown field `prompt_cache_key`", "prompt_cache_key"),
        ("Unsupported parameter: 'verbosity'", "verbosity"),
        ("`reasoning_effort` is not supported by this model", "reasoning_effort"),
        ("'response_format' is not supported", "response_format"),
    ],
)
def test_a_field_that_is_refused_by_name_is_left_out(refusal: str, field: str) -> None:
    sender = wire("x", "https://api.openai.com/v1")
    given_prompt = prompt(message("user", "go"), output_schema=b"{}", effort="high", verbosity="low")
    assert field in json.loads(sender.encode(given_prompt))
    assert sender.adapt(400, ModelError(refusal, retryable=False))
    assert field not in json.loads(sender.encode(given_prompt))
    # Said again, it is a refusal for another reason.
    assert not sender.adapt(400, ModelError(refusal, retryable=False))
    assert not sender.adapt(401, ModelError(refusal, retryable=False))

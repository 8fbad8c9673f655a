"""Chat Completions streams as events: fragments of calls, ends of all sorts, reasoning, errors, and junk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import (
    AnswerNote,
    ArgumentsDelta,
    Completed,
    ItemDone,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.model.wires.chat_answer import ChatDecoder
from codex_py.model.wires.tools import ToolTable
from codex_py.protocol.usage import TokenUsage

DONE = "[DONE]"


def decoder(*known: str) -> ChatDecoder:
    return ChatDecoder(ToolTable(), lambda call_id: call_id in known)


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> str:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    return json.dumps({"id": "chat_1", "object": "chat.completion.chunk", "choices": [choice], **more})


def usage_chunk(**usage: Any) -> str:
    return json.dumps({"id": "chat_1", "choices": [], "usage": usage})


def fragment(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    function: dict[str, Any] = {} if name is None else {"name": name}
    if arguments is not None:
        function["arguments"] = arguments
    return {"tool_calls": [{**more, "function": function}]}


def play(*chunks: str, known: tuple[str, ...] = ()) -> list[ResponseEvent]:
    reader = decoder(*known)
    events = [event for data in chunks for event in reader.decode(data)]
    return [*events, *reader.finish()]


def items(events: list[ResponseEvent]) -> list[dict[str, Any]]:
    return [event.item.decode() for event in events if isinstance(event, ItemDone)]


def calls(events: list[ResponseEvent]) -> list[tuple[str, str, str]]:
    found = [item for item in items(events) if item["type"] == "function_call"]
    return [(item["call_id"], item["name"], item["arguments"]) for item in found]


def test_parallel_calls_in_fragments_that_alternate() -> None:
    events = play(
        chunk({"content": "I look."}),
        chunk(fragment("", "f", index=0, id="a", type="function")),
        chunk(fragment("", "g", index=1, id="b", type="function")),
        chunk(fragment('{"x"', index=0)),
        chunk(fragment('{"y":', index=1)),
        chunk(fragment(":1}", index=0)),
        chunk(fragment("2}", index=1)),
        chunk(finish="tool_calls"),
        DONE,
    )
    assert calls(events) == [("a", "f", '{"x":1}'), ("b", "g", '{"y":2}')]
    assert [event for event in events if isinstance(event, ToolCallStarted)] == [
        ToolCallStarted("f"),
        ToolCallStarted("g"),
    ]
    assert "".join(event.text for event in events if isinstance(event, ArgumentsDelta)) == '{"x"{"y"::1}2}'
    assert items(events)[0]["type"] == "message"


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [
        pytest.param(
            [fragment('{"a":1}', "f", index=0, id="x"), fragment('{"b":2}', "f", index=0, id="y")],
            [("x", '{"a":1}'), ("y", '{"b":2}')],
            id="one index for all",
        ),
        pytest.param(
            [fragment('{"a":1}', "f", index=0, id="x"), fragment('{"b":2}', "f", index=1, id="x")],
            [("x", '{"a":1}'), (None, '{"b":2}')],
            id="one id for all",
        ),
        pytest.param(
            [fragment('{"a":1}', "f", index=0, id="x"), fragment('{"b":2}', "f", index=0, id="x")],
            [("x", '{"a":1}'), (None, '{"b":2}')],
            id="one id and one index for all",
        ),
        pytest.param(
            [fragment('{"a"', "f"), fragment(":1}"), fragment('{"b":2}', "f")],
            [(None, '{"a":1}'), (None, '{"b":2}')],
            id="no id and no index",
        ),
        pytest.param(
            [fragment('{"a"', "f", index=0), fragment(":1}", index=0), fragment('{"b":2}', "f", index=0)],
            [(None, '{"a":1}'), (None, '{"b":2}')],
            id="one index and no id",
        ),
        pytest.param(
            [fragment('{"a"', "f", index=0, id="x"), fragment(":1}", "f", index=0, id="x")],
            [("x", '{"a":1}')],
            id="name and id with each fragment",
        ),
        pytest.param(
            [fragment('{"a"', index=0), fragment(":1}", "f", index=0, id="x")],
            [("x", '{"a":1}')],
            id="the name comes late",
        ),
        pytest.param(
            [fragment('{"a":1}', "f", index=0, id="x"), fragment('{"a":1}', "f", index=0, id="x")],
            [("x", '{"a":1}')],
            id="all of it once more at the end",
        ),
        pytest.param(
            [fragment('{"a":1}', "f", index=0, id="x"), fragment("", "f", index=0, id="x"), fragment("", index=0)],
            [("x", '{"a":1}')],
            id="nothing more at the end",
        ),
        pytest.param(
            [fragment('{"a":"}{\\"', "f", index=0), fragment('}"}', "f", index=0)],
            [(None, '{"a":"}{\\"}"}')],
            id="braces and quotes in a text",
        ),
        pytest.param([fragment({"a": 1}, "f", id="x")], [("x", '{"a":1}')], id="an object, not a text"),
        pytest.param([fragment("", "f", index=0, id="x")], [("x", "{}")], id="no arguments"),
        pytest.param([{"function_call": {"name": "f", "arguments": '{"a":1}'}}], [(None, '{"a":1}')], id="old field"),
        pytest.param(
            [fragment("{}", "f", index=1, id="y"), fragment("{}", "f", index=0, id="x")],
            [("x", "{}"), ("y", "{}")],
            id="the second one first",
        ),
        pytest.param([fragment("{}", "f", index="0", id=7)], [(None, "{}")], id="odd types"),
        pytest.param(
            [
                fragment("", "f", index="0", id="x"),
                fragment("", "f", index="1", id="y"),
                fragment('{"a":1}', index="0"),
                fragment('{"b":2}', index=1.0),
            ],
            [("x", '{"a":1}'), ("y", '{"b":2}')],
            id="indexes that are no integers",
        ),
        pytest.param(
            [fragment('{"a"', "f", index=0, id="x"), fragment(":1}", index=0, id="y")],
            [("x", '{"a":1}')],
            id="another id with each fragment",
        ),
        pytest.param(
            [fragment("", "f", index=0, id="x"), fragment('{"a"', index=0, id="y"), fragment(":1}", index=0, id="z")],
            [("x", '{"a":1}')],
            id="another id with each fragment, the first without arguments",
        ),
        pytest.param(
            [{"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}] * 2}],
            [(None, "{}"), (None, "{}")],
            id="twice the same call in one chunk",
        ),
    ],
)
def test_calls_are_distinguished(fragments: list[dict[str, Any]], expected: list[tuple[str | None, str]]) -> None:
    found = calls(play(*map(chunk, fragments), chunk(finish="tool_calls"), DONE))
    assert [arguments for _, _, arguments in found] == [arguments for _, arguments in expected]
    assert all(name == "f" for _, name, _ in found)
    ids = [call_id for call_id, _, _ in found]
    assert len(set(ids)) == len(ids)
    assert all(0 < len(call_id) <= 40 for call_id in ids)
    assert all(call_id == wanted for call_id, (wanted, _) in zip(ids, expected, strict=True) if wanted)


def test_an_id_that_the_history_has_is_replaced() -> None:
    [(call_id, _, _)] = calls(play(chunk(fragment("{}", "f", index=0, id="call_0")), DONE, known=("call_0",)))
    assert call_id != "call_0"


def test_reasoning_is_kept_whatever_it_is_called() -> None:
    for field in ("reasoning_content", "reasoning", "thinking"):
        events = play(
            chunk({field: "Hm"}), chunk({field: "m."}), chunk({"content": "Yes."}), chunk(finish="stop"), DONE
        )
        assert events[:2] == [StreamReasoningDelta("Hm"), StreamReasoningDelta("m.")]
        [reasoning, message] = items(events)
        assert reasoning == {
            "type": "reasoning",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "Hmm."}],
            "field": field,
        }
        assert message["content"][0]["text"] == "Yes."


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
def test_tags_of_reasoning_may_be_cut_anywhere(size: int) -> None:
    text = "\n<think>\nI <b>think</b> </thin\n</think>\n\nSo <think> it is."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events = play(*(chunk({"content": piece}) for piece in pieces), chunk(finish="stop"), DONE)
    [reasoning, message] = items(events)
    assert reasoning["content"][0]["text"] == "I <b>think</b> </thin\n"
    assert message["content"][0]["text"].strip() == "So <think> it is."


@pytest.mark.parametrize("size", [1, 4, 100])
def test_reasoning_may_end_with_a_tag_that_the_template_has_opened(size: int) -> None:
    text = "I think `</think>` ends it.\n</think>\n\nYes."
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    [reasoning, message] = items(play(*(chunk({"content": piece}) for piece in pieces), chunk(finish="stop"), DONE))
    assert reasoning["content"][0]["text"] == "I think `</think>` ends it.\n"
    assert message["content"] == [{"type": "output_text", "text": "Yes."}]


@pytest.mark.parametrize(
    "text", ["The tag `</think>` ends it.", "```\n</think>\n```", "It begins with <think>.\n</think>"]
)
def test_a_closing_tag_in_an_answer_is_text(text: str) -> None:
    [message] = items(play(chunk({"content": text}), chunk(finish="stop"), DONE))
    assert message["content"][0]["text"] == text


@pytest.mark.parametrize("text", ["<thin", "<", "no tag", "  <thinking> of you", "a<think>b</think>"])
def test_a_text_without_the_tag_is_a_text(text: str) -> None:
    events = play(chunk({"content": text}), chunk(finish="stop"), DONE)
    assert "".join(event.text for event in events if isinstance(event, StreamTextDelta)) == text
    assert [item["type"] for item in items(events)] == ["message"]


def test_the_parts_of_reasoning_details_come_as_one_and_go_back() -> None:
    first = {"type": "reasoning.text", "text": "I ", "index": 0, "format": "anthropic-claude-v1"}
    second = {"type": "reasoning.text", "text": "see", "signature": "s", "index": 0}
    sealed = {"type": "reasoning.encrypted", "data": "xyz", "index": 1}
    events = play(
        chunk({"reasoning": "I ", "reasoning_details": [first]}),
        chunk({"reasoning": "see", "reasoning_details": [second]}),
        chunk({"reasoning_details": [sealed]}),
        chunk({"content": "ok"}, "stop"),
        DONE,
    )
    merged = {**first, "text": "I see", "signature": "s"}
    assert items(events)[0]["details"] == [merged, sealed]


def test_the_signature_of_a_call_is_kept_beside_it() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    events = play(chunk(fragment("{}", "f", index=0, id="a", extra_content=extra)), chunk(finish="stop"), DONE)
    [reasoning, call] = items(events)
    assert reasoning == {"type": "reasoning", "summary": [], "calls": {"a": {"extra_content": extra}}}
    assert call == {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "a"}


@pytest.mark.parametrize("finish", ["stop", "tool_calls", "function_call", "STOP", "eos", "tool_use"])
def test_an_answer_is_whole_without_done(finish: str) -> None:
    events = play(chunk({"content": "hi"}), chunk(finish=finish))
    assert isinstance(events[-1], Completed)
    assert not [event for event in events if isinstance(event, AnswerNote)]


def test_an_answer_is_whole_with_done_alone() -> None:
    assert isinstance(play(chunk({"content": "hi"}), DONE)[-1], Completed)


def test_an_answer_is_whole_with_the_last_usage_and_only_once() -> None:
    reader = decoder()
    for data in (chunk({"content": "hi"}), chunk(finish="stop")):
        reader.decode(data)
    assert isinstance(reader.decode(usage_chunk(prompt_tokens=1))[-1], Completed)
    assert reader.decode(DONE) == reader.decode(chunk({"content": "more"})) == reader.finish() == []


def test_an_end_of_an_unknown_sort_is_named() -> None:
    events = play(chunk({"content": "hi"}, "tired"), DONE)
    assert AnswerNote("the server ended the answer for a reason of its own: `tired`") in events
    assert isinstance(events[-1], Completed)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "model_length"])
def test_a_cut_answer_keeps_its_text_and_makes_no_call(finish: str) -> None:
    reader = decoder()
    events = [*reader.decode(chunk({"content": "half"})), *reader.decode(chunk(fragment('{"a":', "f", index=0)))]
    events += reader.decode(chunk(finish=finish))
    assert [item["type"] for item in items(events)] == ["message"]
    for rest in (lambda: reader.decode(DONE), reader.finish):
        with pytest.raises(ModelError, match=r"incomplete.*max_output_tokens") as caught:
            rest()
        assert not caught.value.retryable


def test_a_refusal_is_a_message() -> None:
    events = play(chunk({"refusal": "I will "}), chunk({"refusal": "not."}), chunk(finish="stop"), DONE)
    assert items(events)[0]["content"] == [{"type": "refusal", "refusal": "I will not."}]
    with pytest.raises(ModelError, match="the model has refused to answer") as caught:
        play(chunk(finish="refusal"), DONE)
    assert not caught.value.retryable


def test_an_empty_answer_is_named() -> None:
    events = play(chunk({"reasoning": "Hm"}), chunk({"content": ""}, "stop"), DONE)
    assert AnswerNote("the model has ended its answer without a message") in events
    with pytest.raises(ModelError, match="before it began") as caught:
        play(DONE)
    assert caught.value.retryable


ERRORS: list[tuple[Any, str, bool]] = [
    ({"error": {"message": "boom", "code": 502}}, "boom", True),
    ({"error": {"message": "no credit", "code": 402}}, "no credit", False),
    ({"error": {"message": "slow down", "code": 429}}, "slow down", True),
    ({"error": "boom"}, "boom", True),
    ([{"error": {"message": "boom", "code": 400, "status": "INVALID_ARGUMENT"}}], "boom", False),
    ({"object": "error", "message": "boom", "code": 400}, "boom", False),
    ({"detail": "boom"}, "boom", True),
    ({"id": "x", "choices": [{"index": 0, "error": {"message": "boom", "code": 503}}]}, "boom", True),
    (
        {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": "bad role"}}},
        "Provider returned error: bad role",
        False,
    ),
    ({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "error"}]}, "ended .* early", True),
    (
        {"error": {"message": "This model's maximum context length is 8192 tokens", "code": 400}},
        "maximum context",
        False,
    ),
]


@pytest.mark.parametrize(
    ("code", "failure"), [(401, "auth"), (402, "quota"), (429, "rate_limit"), ("503", "overloaded"), (404, "config")]
)
def test_an_error_in_the_stream_counts_as_its_status_would(code: Any, failure: str) -> None:
    with pytest.raises(ModelError, match="boom") as caught:
        play(json.dumps({"error": {"message": "boom", "code": code}}))
    assert caught.value.failure == failure


@pytest.mark.parametrize(("data", "message", "retryable"), ERRORS)
def test_an_error_in_the_stream(data: Any, message: str, retryable: bool) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        play(chunk({"content": "hi"}), json.dumps(data))
    assert caught.value.retryable == retryable


def test_a_damaged_chunk_fails_the_attempt_and_junk_does_not() -> None:
    with pytest.raises(ModelError, match="not JSON") as caught:
        play(chunk({"content": "hi"}), '{"choices":[{"delta":{"con')
    assert caught.value.retryable
    junk = ["ping", "", "null", "[]", '"x"', "{}", '{"choices":null}', '{"choices":[7,{"delta":[]}]}', "3"]
    events = play(chunk({"content": "hi"}), *junk, chunk(finish="stop"), DONE)
    assert [item["content"][0]["text"] for item in items(events)] == ["hi"]


def test_a_message_at_the_end_of_a_stream_says_nothing_twice() -> None:
    last = json.dumps({"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]})
    assert [item["content"][0]["text"] for item in items(play(chunk({"content": "hi"}), last, DONE))] == ["hi"]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11, "prompt_cache_hit_tokens": 5},
            TokenUsage(9, 5, 2, 0, 11),
        ),
        ({"prompt_tokens": 9, "cached_tokens": 4, "completion_tokens": 2}, TokenUsage(9, 4, 2, 0, 11)),
        ({"prompt_tokens": 2, "cache_read_input_tokens": 7, "completion_tokens": 1}, TokenUsage(9, 7, 1, 0, 10)),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 18,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            TokenUsage(9, 0, 9, 7, 18),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 8,
                "completion_tokens_details": {"reasoning_tokens": 7},
                "prompt_tokens_details": {"cache_write_tokens": 3},
            },
            TokenUsage(9, 0, 8, 7, 17, 3),
        ),
        ({"prompt_tokens": "9", "completion_tokens": None, "prompt_tokens_details": None}, TokenUsage()),
    ],
)
def test_token_counts_have_several_names(usage: dict[str, Any], counts: TokenUsage) -> None:
    assert play(chunk({"content": "x"}, "stop"), usage_chunk(**usage))[-1] == Completed(counts, None)

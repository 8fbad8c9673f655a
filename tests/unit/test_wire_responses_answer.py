"""Stream events as values: every event that matters, and junk of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import (
    Completed,
    Created,
    ItemDone,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.model.wires.responses import ResponsesDecoder
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import TokenUsage


def parse(value: Any) -> ResponseEvent | None:
    return parse_event(json.dumps(value).encode())


def parse_event(data: bytes) -> ResponseEvent | None:
    events = ResponsesDecoder().decode(data.decode("utf-8", "replace"))
    assert len(events) <= 1
    return events[0] if events else None


USAGE = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 3,
    "output_tokens_details": {"reasoning_tokens": 1},
    "total_tokens": 13,
}
CALL = {"type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}"}


@pytest.mark.parametrize(
    ("value", "event"),
    [
        ({"type": "response.created", "response": {"id": "r"}}, Created()),
        ({"type": "response.created"}, Created()),
        ({"type": "response.output_text.delta", "delta": "hi"}, StreamTextDelta("hi")),
        (
            {"type": "response.reasoning_summary_text.delta", "delta": "h", "summary_index": 0},
            StreamReasoningDelta("h"),
        ),
        ({"type": "response.reasoning_text.delta", "delta": "h", "content_index": 0}, StreamReasoningDelta("h")),
        ({"type": "response.reasoning_summary_part.added", "summary_index": 1}, StreamReasoningDelta("\n\n")),
        ({"type": "response.output_item.added", "item": CALL}, ToolCallStarted("exec_command")),
        ({"type": "response.output_item.added", "item": {"type": "custom_tool_call"}}, ToolCallStarted()),
        (
            {"type": "response.completed", "response": {"id": "r", "usage": USAGE, "end_turn": False}},
            Completed(TokenUsage(10, 4, 3, 1, 13), False),
        ),
        ({"type": "response.completed", "response": {"id": "r", "end_turn": True}}, Completed(None, True)),
        ({"type": "response.completed", "response": {"id": "r", "usage": None}}, Completed(None, None)),
        ({"type": "response.completed", "response": {"id": 7, "usage": [], "end_turn": 1}}, Completed(None, None)),
        ({"type": "response.completed"}, Completed(None, None)),
    ],
)
def test_an_event_that_matters(value: dict[str, Any], event: ResponseEvent) -> None:
    parsed = parse(value)
    assert parsed == event
    assert type(parsed) is type(event)


def test_a_finished_item_keeps_its_unknown_fields_and_is_encoded_once() -> None:
    item = {"id": "i", "type": "brand_new", "deep": {"x": [1, None, "ü"]}, "status": "completed"}
    parsed = parse({"type": "response.output_item.done", "item": item, "output_index": 0})
    expected = '{"type":"brand_new","id":"i","deep":{"x":[1,null,"ü"]},"status":"completed"}'
    assert parsed == ItemDone(ResponseItem(expected.encode()))


@pytest.mark.parametrize(
    "data",
    [
        b"[DONE]",
        b"",
        b"{",
        b'{"type":"response.completed"',
        b"null",
        b"[]",
        b"7",
        b'"response.completed"',
        b"{}",
        b'{"type":null}',
        b'{"type":["response.completed"]}',
        b'{"type":"response.in_progress","response":{}}',
        b'{"type":"response.brand_new"}',
        b'{"type":"response.output_text.delta"}',
        b'{"type":"response.output_text.delta","delta":5}',
        b'{"type":"response.output_item.done"}',
        b'{"type":"response.output_item.done","item":null}',
        b'{"type":"response.output_item.done","item":{}}',
        b'{"type":"response.output_item.done","item":{"type":""}}',
        b'{"type":"response.output_item.done","item":{"type":5}}',
        # No provider would take these back.
        *(
            b'{"type":"response.output_item.done","item":%b}' % item
            for item in (
                b'{"type":"function_call_output","output":"x"}',
                b'{"type":"custom_tool_call_output","call_id":7,"output":"x"}',
                b'{"type":"message","content":[]}',
                b'{"type":"message","role":"assistant","content":null}',
            )
        ),
        b'{"type":"response.output_item.added","item":{"type":"message"}}',
        b'{"type":"response.output_item.added","item":[]}',
        b'{"type":"response.reasoning_summary_part.added","summary_index":0}',
        b'{"type":"response.completed","x":NaN}',
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b'{"type":"response.completed","x":' + b"9" * 100_000 + b"}",
        b"\x00\x01\x02",
    ],
)
def test_junk_and_what_is_of_no_use_is_skipped(data: bytes) -> None:
    assert parse_event(data) is None


def failure(value: Any) -> tuple[str, bool, float | None, bool]:
    with pytest.raises(ModelError) as caught:
        parse(value)
    error = caught.value
    return str(error), error.retryable, error.retry_after, error.streaming


def failed(**error: Any) -> dict[str, Any]:
    return {"type": "response.failed", "response": {"id": "r", "error": error or None}}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"code": "server_error", "message": "oops"}, ("oops (`server_error`)", True, None, True)),
        ({"code": "slow_down", "message": "slow"}, ("slow (`slow_down`)", True, None, True)),
        ({"message": "oops"}, ("oops", True, None, True)),
        ({"code": "odd"}, ("the server reported `odd`", True, None, True)),
        ({}, ("the server reported a failure without saying which", True, None, True)),
        ({"code": 5, "message": {"a": 1}}, ("the server reported `5`", True, None, True)),
        (
            {"code": "rate_limit_exceeded", "message": "Please try again in 1.5s."},
            ("Please try again in 1.5s. (`rate_limit_exceeded`)", True, 1.5, True),
        ),
        (
            {"code": "server_error", "message": "try again in 9s"},
            ("try again in 9s (`server_error`)", True, None, True),
        ),
        ({"message": "a\x1b[31m\nb\u202e\x07c"}, ("a [31m b c", True, None, True)),
    ],
)
def test_other_failures_are_retried(error: dict[str, Any], expected: tuple[str, bool, float | None, bool]) -> None:
    assert failure(failed(**error)) == expected


def test_a_rate_limit_of_hours_is_final_and_says_when() -> None:
    message, retryable, delay, _ = failure(failed(code="rate_limit_exceeded", message="try again in 9000 seconds"))
    assert (retryable, delay) == (False, None)
    assert "; the server asks to try again in 150 minutes, at 20" in message


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            {"incomplete_details": {"reason": "max_output_tokens"}},
            ("the answer is incomplete, the server's reason: `max_output_tokens`", False, None, True),
        ),
        (
            {"incomplete_details": {"reason": "content_filter"}},
            ("the answer is incomplete, the server's reason: `content_filter`", True, None, True),
        ),
        ({"incomplete_details": None}, ("the answer is incomplete, the server's reason: `unknown`", True, None, True)),
        (None, ("the answer is incomplete, the server's reason: `unknown`", True, None, True)),
    ],
)
def test_an_incomplete_answer(response: Any, expected: tuple[str, bool, float | None, bool]) -> None:
    assert failure({"type": "response.incomplete", "response": response}) == expected


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"code": "server_error", "message": "oops"}, ("oops (`server_error`)", True, None, True)),
        ({"error": {"code": "invalid_prompt", "message": "bad"}}, ("bad (`invalid_prompt`)", False, None, True)),
        ({"error": "plain"}, ("plain", True, None, True)),
        ({}, ("the server reported a failure without saying which", True, None, True)),
    ],
)
def test_a_top_level_error_event_is_a_failure(event: Any, expected: tuple[str, bool, float | None, bool]) -> None:
    assert failure({"type": "error", **event}) == expected

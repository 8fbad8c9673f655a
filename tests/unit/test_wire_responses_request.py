"""The request body: its exact bytes, and that it only grows at the end of `input`."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from codex_py.model.client import Prompt
from codex_py.model.providers import Provider
from codex_py.model.wires.responses import ResponsesWire
from codex_py.protocol.encoding import encode_json

encode_body = ResponsesWire(Provider("fake", "Fake", "http://127.0.0.1/v1")).encode
PLAIN = Prompt(model="m", instructions="be kind", input=[b'{"a":1}'], tools=b"[]", thread_id="t-1", turn_id="u-1")


def metadata(*, window: int = 0, **more: str) -> bytes:
    """`client_metadata` of the plain prompt: what the header says, and the ids once more."""
    turn = {
        "session_id": "t-1",
        "thread_id": "t-1",
        "agent_name": "/root",
        "turn_id": "u-1",
        "window_id": f"t-1:{window}",
        "window_number": window,
        "request_kind": "turn",
        "root_turn_id": "u-1",
        "thread_source": "user",
        "model": "m",
        **more,
    }
    fields = {
        "root_turn_id": "u-1",
        "session_id": "t-1",
        "thread_id": "t-1",
        "turn_id": "u-1",
        "x-codex-turn-metadata": json.dumps(turn, separators=(",", ":")),
        "x-codex-window-id": f"t-1:{window}",
    }
    return json.dumps(fields, separators=(",", ":")).encode()


PLAIN_BODY = (
    b'{"model":"m","instructions":"be kind","stream":true,"input":[{"a":1}],"tools":[],"tool_choice":"auto",'
    b'"parallel_tool_calls":true,"store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"t-1",'
    b'"client_metadata":%b}' % metadata(window=0)
)


def test_a_plain_body_is_these_bytes() -> None:
    assert encode_body(PLAIN) == PLAIN_BODY


def test_a_full_body_has_its_keys_in_the_fixed_order() -> None:
    prompt = PLAIN.replace(
        input=[b'{"a":1}', b'{"b":2}'],
        tools=b'[{"type":"function"}]',
        window=3,
        parallel_tool_calls=False,
        effort="high",
        summary="auto",
        verbosity="low",
        service_tier="flex",
        output_schema=b'{"type":"object"}',
    )
    assert encode_body(prompt) == (
        b'{"model":"m","instructions":"be kind","stream":true,"service_tier":"flex","input":[{"a":1},{"b":2}],'
        b'"tools":[{"type":"function"}],"tool_choice":"auto","parallel_tool_calls":false,'
        b'"reasoning":{"effort":"high","summary":"auto"},"store":false,"include":["reasoning.encrypted_content"],'
        b'"prompt_cache_key":"t-1","text":{"verbosity":"low","format":{"type":"json_schema","strict":false,'
        b'"schema":{"type":"object"},"name":"codex_output_schema"}},'
        b'"client_metadata":%b}' % metadata(window=3, reasoning_effort="high")
    )


@pytest.mark.parametrize(
    ("effort", "summary", "expected"),
    [
        (None, None, None),
        ("medium", None, {"effort": "medium"}),
        (None, "auto", {"summary": "auto"}),
        ("none", "none", {"effort": "none"}),
        (None, "none", None),
        ("", "", None),
    ],
)
def test_reasoning_holds_what_was_chosen_and_is_left_out_when_nothing_was(
    effort: str | None, summary: str | None, expected: dict[str, str] | None
) -> None:
    body = json.loads(encode_body(PLAIN.replace(effort=effort, summary=summary)))
    assert body.get("reasoning") == expected


@pytest.mark.parametrize(
    ("verbosity", "schema", "expected"),
    [
        (None, None, None),
        ("high", None, {"verbosity": "high"}),
        (
            None,
            b'{"x":"%s"}',
            {"format": {"type": "json_schema", "strict": False, "schema": {"x": "%s"}, "name": "codex_output_schema"}},
        ),
    ],
)
def test_text_holds_verbosity_and_format(verbosity: str | None, schema: bytes | None, expected: object) -> None:
    body = json.loads(encode_body(PLAIN.replace(verbosity=verbosity, output_schema=schema)))
    assert body.get("text") == expected


def test_a_longer_history_extends_the_body_up_to_the_end_of_input() -> None:
    items = [b'{"n":%d}' % number for number in range(5)]
    bodies = [encode_body(PLAIN.replace(input=items[:count], turn_id=f"u-{count}")) for count in range(1, 6)]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter[: shorter.index(b'],"tools"')])


def test_an_empty_history_is_an_empty_array() -> None:
    assert json.loads(encode_body(PLAIN.replace(input=[])))["input"] == []


def test_texts_keep_their_characters_and_a_lone_surrogate_survives() -> None:
    body = encode_body(PLAIN.replace(instructions='ü "quoted" \n \ud83d', model="模型"))
    decoded = json.loads(body)
    assert (decoded["instructions"], decoded["model"]) == ('ü "quoted" \n \ud83d', "模型")
    assert "模型".encode() in encode_body(PLAIN.replace(model="模型"))


def test_no_key_is_written_twice() -> None:
    full = PLAIN.replace(effort="low", verbosity="low", output_schema=b"{}", service_tier="priority")
    pairs = json.loads(encode_body(full), object_pairs_hook=lambda found: [key for key, _ in found])
    assert len(pairs) == len(set(pairs))
    assert "previous_response_id" not in pairs


def test_ids_and_names_of_calls_fit_the_api_whoever_made_them() -> None:
    long = "call_" + "x" * 80
    history = [
        {"type": "function_call", "call_id": long, "name": "run", "arguments": '{"name":"a b"}'},
        {"type": "function_call_output", "call_id": long, "output": "1"},
        {"type": "function_call", "call_id": long + "y", "name": "functions.run it", "arguments": "{}"},
        {"type": "function_call_output", "call_id": long + "y", "output": "2"},
        {"type": "function_call", "call_id": "call_1", "name": "container.exec", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": f'"call_id":"{long}"'},
    ]
    encoded = [encode_json(item) for item in history]
    bodies = [encode_body(PLAIN.replace(input=encoded[:count], thread_id="t-ids")) for count in (2, 4, 6)]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter[: shorter.index(b'],"tools"')])
    sent = json.loads(bodies[-1])["input"]
    ids = [item["call_id"] for item in sent]
    assert ids[::2] == ids[1::2]
    assert len(set(ids)) == 3
    assert all(len(call_id) <= 64 for call_id in ids)
    assert [item["name"] for item in sent if "name" in item] == ["run", "functions_run_it", "container_exec"]
    kept = ("arguments", "output")
    assert [[item.get(key) for key in kept] for item in sent] == [[item.get(key) for key in kept] for item in history]
    assert sent[-1] == history[-1]

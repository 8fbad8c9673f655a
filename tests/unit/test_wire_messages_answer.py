"""Answers of the Messages API as events: every block, every reason to stop, and streams of junk."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import Completed, Created, ItemDone, ResponseEvent, StreamTextDelta, ToolCallStarted
from codex_py.model.wires.messages_answer import MessagesDecoder
from codex_py.model.wires.tools import ToolTable
from codex_py.protocol.usage import TokenUsage
from tests.support.fake_messages import answer, redacts, says, thinks, uses
from tests.support.work import within


def read(stream: Sequence[Any]) -> list[ResponseEvent]:
    """The events of a stream that ends; those of a call that fails are lost with it."""
    decoder = MessagesDecoder(ToolTable(), lambda _: False)
    found = [event for data in stream for event in decoder.decode(encoded(data))]
    return [*found, *decoder.finish()]


def encoded(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


def items(found: Sequence[ResponseEvent]) -> list[dict[str, Any]]:
    return [event.item.decode() for event in found if isinstance(event, ItemDone)]


def call(call_id: str, arguments: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": arguments}


def message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_every_block_is_an_item_in_its_order() -> None:
    found = read(
        answer(thinks("hm", signature="s"), says("one", "o", "ne"), redacts("d"), uses("t1", "run", {"a": [1, "é"]}))
    )
    assert found[0] == Created()
    assert [event for event in found if isinstance(event, StreamTextDelta)] == [
        StreamTextDelta("o"),
        StreamTextDelta("ne"),
    ]
    assert [event for event in found if isinstance(event, ToolCallStarted)] == [ToolCallStarted("run")]
    assert items(found) == [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "s"},
        message("one"),
        {"type": "reasoning", "summary": [], "encrypted_content": "d", "redacted": True},
        call("t1", '{"a": [1, "é"]}'),
    ]
    assert found[-1] == Completed(TokenUsage(3, 0, 5, 0, 8, 0), None)


@pytest.mark.parametrize("stop", ["end_turn", "tool_use", "stop_sequence", "not_known_yet"])
def test_most_reasons_end_the_answer(stop: str) -> None:
    assert isinstance(read(answer(says("x"), stop=stop))[-1], Completed)


def changed(stream: list[Any], change: Any) -> list[Any]:
    return [change(dict(event)) if "index" in event else event for event in stream]


@pytest.mark.parametrize("number", [str, float])
def test_an_index_may_be_no_integer(number: Any) -> None:
    stream = answer(says("one"), uses("t1", "run", {"a": 1}))
    found = read(changed(stream, lambda event: {**event, "index": number(event["index"])}))
    assert items(found) == [message("one"), call("t1", '{"a": 1}')]


def test_blocks_without_an_index_stand_one_after_the_other() -> None:
    stream = answer(says("one"), uses("t1", "run", {"a": 1}), says("two"))
    found = read(changed(stream, lambda event: {key: value for key, value in event.items() if key != "index"}))
    assert items(found) == [message("one"), call("t1", '{"a": 1}'), message("two")]


def test_a_text_whose_start_is_missing_is_read() -> None:
    stream = [event for event in answer(says("one")) if event["type"] != "content_block_start"]
    assert items(read(stream)) == [message("one")]


@pytest.mark.parametrize(
    ("event", "words", "failure"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "full"}}, "full", "overloaded"),
        ({"type": "error", "error": {"type": "billing_error", "message": "pay"}}, "pay", "quota"),
        ({"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}, "model: x", "config"),
        ({"type": "error", "error": {"type": "timeout_error", "message": "slow"}}, "slow", "timeout"),
        ({"type": "error", "error": "odd"}, "odd", "overloaded"),
        ({"type": "error", "message": "flat"}, "flat", "overloaded"),
        ({"error": {"message": "bare", "code": 429}}, "bare", "rate_limit"),
    ],
)
def test_an_error_in_the_stream_is_named_in_every_form(event: Any, words: str, failure: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        read([*answer(says("one"))[:3], event])
    assert caught.value.failure == failure


def test_an_answer_without_its_last_event_counts_when_it_has_said_why_it_stopped() -> None:
    assert isinstance(read(answer(says("x"))[:-1])[-1], Completed)
    assert not any(isinstance(event, Completed) for event in read(answer(says("x"))[:-2]))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("", "{}"), ("{}", "{}"), ('{"a":1}', '{"a":1}'), ('{"a":', '{"a":'), ("[1]", "[1]")],
)
def test_a_call_whose_answer_went_on_is_made_whatever_its_arguments_are(arguments: str, expected: str) -> None:
    assert items(read(answer(uses("t1", "run", arguments), says("then")))) == [call("t1", expected), message("then")]
    assert items(read(answer(uses("t1", "run", arguments)))) == [call("t1", expected)]


def test_arguments_that_come_with_the_start_count() -> None:
    start = {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}}
    assert items(read(answer((start, [])))) == [call("t1", '{"a":1}')]


def test_every_call_has_an_id_of_its_own_and_the_same_call_counts_once() -> None:
    found = items(
        read(answer(uses("t", "run", {}), uses("t", "run", {}), uses("t", "run", {"a": 1}), uses("", "run", {})))
    )
    ids = [item["call_id"] for item in found]
    assert [item["arguments"] for item in found] == ["{}", '{"a": 1}', "{}"]
    assert ids[0] == "t"
    assert len(set(ids)) == 3
    assert "" not in ids


def test_blocks_that_never_end_end_with_the_answer() -> None:
    stream = [
        event for event in answer(says("x"), uses("t1", "run", {"a": 1})) if event["type"] != "content_block_stop"
    ]
    assert items(read(stream)) == [message("x"), call("t1", '{"a": 1}')]


def test_a_whole_message_in_place_of_a_stream_is_read() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}},
    ]
    body = {"type": "message", "id": "m", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 2}}
    decoder = MessagesDecoder(ToolTable(), lambda _: False)
    found = [*(decoder.decode_body(encoded(body).encode()) or ()), *decoder.finish()]
    assert [item["type"] for item in items(found)] == ["reasoning", "message", "function_call"]
    assert isinstance(found[-1], Completed)
    assert decoder.decode_body(b'{"hello": 1}') is None
    assert decoder.decode_body(b"{") is None
    with pytest.raises(ModelError, match="full"):
        decoder.decode_body(b'{"type": "error", "error": {"type": "overloaded_error", "message": "full"}}')


def test_random_streams_never_crash_and_never_make_a_call_twice() -> None:
    for seed in range(1500):
        chance = random.Random(seed)
        stream = mutated(random_answer(chance), chance)
        try:
            found = read(stream)
        except ModelError:
            continue
        calls = [(item["call_id"], item["arguments"]) for item in items(found) if item["type"] == "function_call"]
        assert len({call_id for call_id, _ in calls}) == len(calls), seed
        assert sum(isinstance(event, Completed) for event in found) <= 1, seed


def test_fragments_of_any_size_make_the_same_calls() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        wanted = [
            (f"t{n}", json.dumps({"text": "x" * chance.randrange(60), "n": n})) for n in range(chance.randrange(5))
        ]
        blocks = [uses(call_id, "run", arguments) for call_id, arguments in wanted]
        found = items(read(interleaved(answer(*blocks), chance)))
        assert sorted((item["call_id"], item["arguments"]) for item in found) == sorted(wanted), seed


def random_answer(chance: random.Random) -> list[Any]:
    makers = [
        lambda: says("x" * chance.randrange(5)),
        lambda: thinks("t" * chance.randrange(3)),
        lambda: redacts("r"),
        lambda: uses(chance.choice(["a", "b", ""]), "run", chance.choice(["", "{}", '{"a": 1}', '{"a', "null"])),
    ]
    stops = [None, "max_tokens", "pause_turn", "refusal", "tool_use", "odd"]
    return answer(*(chance.choice(makers)() for _ in range(chance.randrange(6))), stop=chance.choice(stops))


def mutated(stream: list[Any], chance: random.Random) -> list[Any]:
    """The stream with events lost, doubled, moved, cut short and made into nonsense."""
    stream = [event for event in stream if chance.random() > 0.05]
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(stream) + 1)
        match chance.randrange(5):
            case 0:
                stream[at:at] = stream[at : at + 1]
            case 1 if at < len(stream):
                stream.append(stream.pop(at))
            case 2:
                stream = stream[:at]
            case 3 if at < len(stream):
                raw = bytearray(encoded(stream[at]).encode())
                raw[chance.randrange(len(raw))] = chance.randrange(256)
                stream[at] = raw.decode("utf-8", "replace")
            case _:
                odd: list[Any] = [
                    {"type": "ping"},
                    [],
                    None,
                    {"type": "content_block_delta", "index": "x"},
                    {"type": 1},
                ]
                stream.insert(at, chance.choice(odd))
    return stream


def interleaved(stream: list[Any], chance: random.Random) -> list[Any]:
    """The blocks of a stream at once, each in its own order."""
    lanes: dict[int, list[Any]] = {}
    for event in stream:
        if "index" in event:
            lanes.setdefault(event["index"], []).append(event)
    mixed: list[Any] = []
    while lanes:
        lane = chance.choice(list(lanes))
        mixed.append(lanes[lane].pop(0))
        if not lanes[lane]:
            del lanes[lane]
    return [*stream[:1], *mixed, *stream[-2:]]


def test_a_long_answer_takes_work_in_proportion_to_its_length() -> None:
    pieces = ["x"] * 20_000
    stream = [encoded(event) for event in answer(says("", *pieces))]
    events = within(20_000 * 120, lambda: read(stream))
    assert items(events) == [message("x" * 20_000)]

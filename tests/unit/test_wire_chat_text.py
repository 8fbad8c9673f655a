"""Streams of a few letters a chunk: read in a row they bring what they bring one by one, and cost little each."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from codex_py.errors import ModelError
from codex_py.model.client import ResponseEvent, StreamReasoningDelta, StreamTextDelta
from codex_py.model.wires.chat_answer import ChatDecoder
from codex_py.model.wires.tools import ToolTable
from tests.support.work import within

TEXTS = ["a", "he ", "é", "你好", '"', "\\", "\n", "\u2028", "<think>", "</think>", "", " ", "}", '{"content":"', "😀"]


def chunk(field: str, text: str, *, around: dict[str, Any], finish: str | None = None) -> bytes:
    delta: dict[str, Any] = {**around, field: text}
    value = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def read(stream: list[bytes], *, in_a_row: bool, size: int = 7) -> list[ResponseEvent]:
    decoder = ChatDecoder(ToolTable(), lambda _: False)
    events: list[ResponseEvent] = []
    for at in range(0, len(stream), size):
        waiting = stream[at : at + size][::-1]
        while waiting:
            taken = decoder.take_text(waiting) if in_a_row else []
            events += taken or decoder.decode(waiting.pop())
    return [*events, *decoder.finish()]


def joined(events: list[ResponseEvent]) -> list[Any]:
    """The events with the pieces of one text in one."""
    whole: list[Any] = []
    for event in events:
        if isinstance(event, StreamTextDelta | StreamReasoningDelta) and whole and whole[-1][0] is type(event):
            whole[-1] = (type(event), whole[-1][1] + event.text)
        elif isinstance(event, StreamTextDelta | StreamReasoningDelta):
            whole.append((type(event), event.text))
        else:
            whole.append((type(event), event))
    return whole


@pytest.mark.parametrize("around", [{}, {"role": "assistant"}, {"role": "assistant", "refusal": None}])
def test_a_row_of_small_chunks_brings_what_they_bring_one_by_one(around: dict[str, Any]) -> None:
    chance = random.Random(46)
    for _ in range(150):
        stream = [
            chunk(chance.choice(["content", "content", "content", "reasoning_content"]), text, around=around)
            for text in chance.choices(TEXTS, k=chance.randrange(1, 40))
        ]
        stream += [chunk("content", "the end", around=around, finish="stop"), b"[DONE]"]
        assert joined(read(stream, in_a_row=True)) == joined(read(stream, in_a_row=False))


def test_a_chunk_that_is_not_whole_is_no_text() -> None:
    good = chunk("content", "hello", around={})
    for bad in (good[:-3], good.replace(b"hello", b"he\x01llo"), b'{"choices":[{"delta":{"content":"x"}', b"{}x"):
        with pytest.raises(ModelError, match="not JSON"):
            read([good, good, bad], in_a_row=True)
    invalid = good.replace(b"hello", b"he\xffllo")
    assert joined(read([good, invalid, good, b"[DONE]"], in_a_row=True)) == joined(
        read([good, invalid, good, b"[DONE]"], in_a_row=False)
    )


def test_a_letter_costs_next_to_nothing() -> None:
    stream = [chunk("content", chr(97 + number % 26), around={}) for number in range(20_000)]
    within(20_000 * 12, lambda: read(stream, in_a_row=True, size=1000))

"""A server of the Messages API on the loopback, as strict as the real one: what is wrong with a request is a 400.

    with FakeMessages(answer(thinks("hm"), uses("toolu_1", "exec_command", {"cmd": "ls"})), answer(says("o"))) as model:
        ...
    assert model.bodies[1]["messages"][-1]["content"][0]["content"] == "hi"

It is scripted as `FakeResponses` is; what an answer needs around its blocks is added here.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Any

from tests.support.fake_responses import FakeResponses, Request
from tests.support.messages_rules import Json, Past, blocks_of, find_problems
from tests.support.script import Answer, Cut, End, Hang, Play, Repeat, Stream, status

__all__ = ["FakeMessages", "answer", "api_refusal", "blocks_of", "redacts", "says", "thinks", "uses"]

Block = tuple[Json, list[Json]]


def says(text: str, *pieces: str) -> Block:
    """A text in one piece or several."""
    parts = pieces or (text,)
    return {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in parts]


def thinks(text: str, *, signature: str | None = None) -> Block:
    made = hashlib.sha256(text.encode()).hexdigest() if signature is None else signature
    deltas: list[Json] = [{"type": "thinking_delta", "thinking": text}] if text else []
    return {"type": "thinking", "thinking": "", "signature": ""}, [
        *deltas,
        {"type": "signature_delta", "signature": made},
    ]


def redacts(data: str) -> Block:
    return {"type": "redacted_thinking", "data": data}, []


def uses(call_id: str, name: str, arguments: Json | str) -> Block:
    """A call; arguments given as a string go out as they are, in pieces of seven characters."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
    start: Json = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return start, [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces]]


def answer(
    *blocks: Block, stop: str | None = None, usage: Mapping[str, int] | None = None, details: Json | None = None
) -> list[Any]:
    """The events of an answer; `stop` is by default what the blocks say. `usage` is that of its start."""
    counts = dict(usage or {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0})
    events: list[Json] = [
        {"type": "message_start", "message": {"id": "msg_1", "usage": {**counts, "output_tokens": 1}}}
    ]
    events.append({"type": "ping"})
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if stop is None:
        stop = "tool_use" if any(start["type"] == "tool_use" for start, _ in blocks) else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None, **({"stop_details": details} if details else {})}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}})
    events.append({"type": "message_stop"})
    return events


def api_refusal(code: int, error_type: str, text: str, headers: Mapping[str, str] | None = None) -> Answer:
    """A refusal in the form of the API."""
    body = {"type": "error", "error": {"type": error_type, "message": text}, "request_id": "req_1"}
    return status(code, body, headers)


class FakeMessages(FakeResponses):
    """The server. `key` is what it expects as `x-api-key`, `bearer` as a token. `tokens` answers `count_tokens`."""

    def __init__(
        self,
        *script: Play | Repeat,
        key: str = "",
        bearer: str = "",
        tokens: int = 0,
        knows_thinking: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(*script, **options)
        self.paths = ("/messages", "/messages/count_tokens")
        self.bodies: list[Json] = []
        self.counted: list[Json] = []
        self._past = Past(knows_thinking=knows_thinking)
        # An agent with a model of its own has a conversation of its own.
        self._agents_past = Past(self._past.sent_thinking, knows_thinking=knows_thinking)
        self._forgets = False
        self._auth = {"x-api-key": key} if key else {"authorization": f"Bearer {bearer}"} if bearer else {}
        self._tokens = tokens

    agent_model = "agents-model"

    def accept(self, path: str, headers: dict[str, str], body: bytes) -> Stream:
        """Check a request and say what to answer it with."""
        received_at = time.monotonic()
        value: Json = json.loads(body)
        wanted = {"anthropic-version": "2023-06-01", **self._auth}
        if wrong := [name for name, value_ in wanted.items() if headers.get(name) != value_]:
            self.complain("headers", [f"{name} is {headers.get(name)!r}" for name in wrong])
            return [api_refusal(401, "authentication_error", f"invalid {', '.join(wrong)}")]
        if path.partition("?")[0].endswith("/count_tokens"):
            return [self._count(value, body)]
        past = self._agents_past if value["model"] == self.agent_model else self._past
        with self._condition:
            problems = find_problems(value, body, past)
            play = self._next_play()
            self.bodies.append(value)
            self.requests.append(Request(path, headers, body, received_at, value, {}))
            self._condition.notify_all()
        self.complain("messages", problems)
        if problems and "messages" not in self._excused:
            return [api_refusal(400, "invalid_request_error", problems[0])]
        played = play(self.requests[-1]) if callable(play) else play
        stream = [played] if isinstance(played, Answer) else played
        if not isinstance(played, Answer):
            past.last, past.last_body = (None if self._forgets else value), body
            self._forgets = False
        self._remember(value["model"], stream)
        return stream

    def forget_prefix(self) -> None:
        """The next request need not extend this one, which asks for a summary."""
        self._forgets = True

    def _count(self, value: Json, body: bytes) -> Answer:
        self.counted.append(value)
        extra = {"max_tokens", "stream"} & set(value)
        problems = [f"{name}: Extra inputs are not permitted" for name in extra]
        problems += find_problems({**value, "max_tokens": 100_000}, body, Past(self._past.sent_thinking))
        self.complain("count_tokens", problems)
        return status(200, {"input_tokens": self._tokens})

    def _remember(self, model: str, stream: Stream) -> None:
        """Note the thinking that is sent whole, which alone may come back."""
        sent = self._past.sent_thinking.setdefault(model, [])
        open_blocks: dict[int, Json] = {}
        for element in stream:
            match element:
                case Cut() | End() | Hang() | Answer():
                    return
                case {"type": "content_block_start", "index": index, "content_block": block}:
                    open_blocks[index] = dict(block)
                case {"type": "content_block_delta", "index": index, "delta": {"type": kind, **piece}}:
                    for name, text in piece.items():
                        if kind in ("thinking_delta", "signature_delta"):
                            open_blocks[index][name] += text
                case {"type": "content_block_stop", "index": index}:
                    block = open_blocks.pop(index)
                    if block["type"] in ("thinking", "redacted_thinking"):
                        sent.append(block)
                case _:
                    pass

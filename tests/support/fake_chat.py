"""A strict server of the Chat Completions API on the loopback: what is wrong with a request is a 400, and a problem.

    with FakeChat(answer("I look", calls=[("c1", "exec_command", {"cmd": "ls"})]), answer("done")) as model:
        ...
    assert model.bodies[1]["messages"][-1] == {"role": "tool", "tool_call_id": "c1", "content": "hi"}

It is scripted as `FakeResponses` is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from tests.support.chat_rules import Dialect, Json, Past, find_problems, messages_bytes
from tests.support.fake_responses import FakeResponses, Request
from tests.support.script import Answer, Play, Raw, Repeat, Stream, status

__all__ = ["Dialect", "FakeChat", "answer", "chunk", "done", "whole"]

Call = tuple[str, str, Any]


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Raw:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    value = {"id": "chat_1", "object": "chat.completion.chunk", "choices": [choice], **more}
    return Raw(b"data: %b\n\n" % json.dumps(value).encode())


def done(**usage: int) -> list[Raw]:
    """The last chunk, with the usage, and the end."""
    counts = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12, **usage}
    last: Json = {"id": "chat_1", "choices": [], "usage": counts}
    return [Raw(b"data: %b\n\n" % json.dumps(last).encode()), Raw(b"data: [DONE]\n\n")]


def answer(
    text: str = "", *, calls: Sequence[Call] = (), reasoning: str = "", field: str = "reasoning_content", **usage: int
) -> list[Any]:
    """A whole stream: reasoning, a text in two pieces, the calls with arguments in pieces, the end."""
    stream: list[Any] = [chunk({"role": "assistant", "content": ""})]
    if reasoning:
        stream += [chunk({field: reasoning[:3]}), chunk({field: reasoning[3:]})]
    stream += [chunk({"content": piece}) for piece in (text[:5], text[5:]) if piece]
    for index, (call_id, name, arguments) in enumerate(calls):
        encoded = arguments if isinstance(arguments, str) else json.dumps(arguments)
        start = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        stream.append(chunk({"tool_calls": [start]}))
        for at in range(0, len(encoded), 7):
            piece = {"index": index, "function": {"arguments": encoded[at : at + 7]}}
            stream.append(chunk({"tool_calls": [piece]}))
    return [*stream, chunk(finish="tool_calls" if calls else "stop"), *done(**usage)]


def whole(text: str = "", *, calls: Sequence[Call] = ()) -> Answer:
    """The same from a server that cannot stream."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in calls
    ]
    message = {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if made else "stop"}
    body = {"id": "chat_1", "object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 10}}
    return status(200, body)


class FakeChat(FakeResponses):
    """The server. `dialect` is what it takes beyond what all servers take."""

    def __init__(self, *script: Play | Repeat, dialect: Dialect | None = None, **options: Any) -> None:
        super().__init__(*script, **options)
        self.paths = ("/chat/completions",)
        self.bodies: list[Json] = []
        self.refused: list[str] = []
        self._dialect = dialect or Dialect()
        # By model: an agent with a model of its own has a conversation of its own.
        self._pasts = {self.agent_model: Past()}
        self._usual_past = Past()
        self._forgets = False

    agent_model = "agents-model"

    def accept(self, path: str, headers: dict[str, str], body: bytes) -> Stream:
        """Check a request and say what to answer it with."""
        received_at = time.monotonic()
        value: Json = json.loads(body)
        past = self._pasts.get(value["model"], self._usual_past)
        with self._condition:
            problems = find_problems(value, body, past, self._dialect)
            if problems and self._is_lenient:
                self.refused += problems
                return [_refusal(problems[0])]
            play = self._next_play()
            self.bodies.append(value)
            self.requests.append(Request(path, headers, body, received_at, value, {}))
            self._condition.notify_all()
        self.complain("chat", problems)
        if problems:
            return [_refusal(problems[0])]
        played = play(self.requests[-1]) if callable(play) else play
        if isinstance(played, Answer):
            return [played]
        if self._forgets:
            past.messages, self._forgets = b"", False
        else:
            past.model, past.messages = value["model"], messages_bytes(body)
        self._note(value["model"], played, past)
        return played

    @property
    def _is_lenient(self) -> bool:
        return "chat" in self._excused

    def forget_prefix(self) -> None:
        """The request after this one need not extend it: this one asks for a summary."""
        self._forgets = True

    def _note(self, model: str, stream: Stream, past: Past) -> None:
        pieces: list[str] = []
        for element in stream:
            if isinstance(element, Raw) and b'"reasoning_content"' in element.content:
                [choice] = json.loads(element.content[6:])["choices"]
                pieces.append(choice["delta"]["reasoning_content"])
        past.reasoning.setdefault(model, []).append("".join(pieces))


def _refusal(text: str) -> Answer:
    return status(400, {"error": {"message": text, "type": "invalid_request_error", "code": None}})

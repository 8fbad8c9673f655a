"""The same answers on every wire: what a server says with text, calls, errors and pieces of an answer, by API."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.support import fake_chat, fake_messages, fake_responses
from tests.support.fake_chat import FakeChat
from tests.support.fake_messages import FakeMessages
from tests.support.fake_responses import FakeResponses, Request
from tests.support.script import Stream, raw

Call = tuple[str, str, Any]


class Dialect(NamedTuple):
    """How one API says things. `answer` is a whole stream of a text and calls; `half` is a text that goes on.

    `called` is a stream up to the end of its calls; what follows may still break off. `failed` is the event of an
    error with a type and a message. `ended` is an answer with half a text that ends at its `limit`, in a `filter` or
    in a `refusal`, with a usage of 100 tokens in and 7 out. `outputs` gives the calls of a request with their outputs.
    """

    wire: str
    fake: type[FakeResponses]
    answer: Callable[[str, Sequence[Call]], Stream]
    half: Callable[[str], Stream]
    called: Callable[[str, Sequence[Call]], Stream]
    failed: Callable[[str, str], Any]
    ended: Callable[[str, str], Stream]
    outputs: Callable[[Request], dict[str, str]]
    said: Callable[[Request], list[str]]

    def server(self, *script: Any, **options: Any) -> FakeResponses:
        return self.fake(*script, **options)

    def say(self, text: str) -> Stream:
        return self.answer(text, [])


def shell(call_id: str, command: str) -> Call:
    return call_id, "exec_command", {"cmd": command, "login": False}


def _responses_answer(text: str, calls: Sequence[Call]) -> Stream:
    said = [fake_responses.say(text, id=f"msg_{abs(hash(text))}")] if text else []
    return [*said, *(fake_responses.call(*call) for call in calls)]


def _responses_ended(text: str, how: str) -> Stream:
    usage = fake_responses.tokens(100, 7)
    if how == "refusal":
        said = fake_responses.say(text)
        said["item"]["content"] = [{"type": "refusal", "refusal": text}]
        return [said, fake_responses.completed(usage)]
    reason = {"limit": "max_output_tokens", "filter": "content_filter"}[how]
    response = {"id": "resp_1", "status": "incomplete", "incomplete_details": {"reason": reason}, "usage": usage}
    return [fake_responses.say(text), {"type": "response.incomplete", "response": response}]


def _chat_ended(text: str, how: str) -> Stream:
    usage = fake_chat.done(prompt_tokens=100, completion_tokens=7, total_tokens=107)
    if how == "refusal":
        return [fake_chat.chunk({"refusal": text}), fake_chat.chunk(finish="stop"), *usage]
    finish = {"limit": "length", "filter": "content_filter"}[how]
    return [fake_chat.chunk({"content": text}), fake_chat.chunk(finish=finish), *usage]


def _messages_ended(text: str, how: str) -> Stream:
    # The API has no filter beside its refusals.
    stop = {"limit": "max_tokens", "filter": "refusal", "refusal": "refusal"}[how]
    usage = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    *events, delta, end = fake_messages.answer(fake_messages.says(text), stop=stop, usage=usage)
    return [*events, {**delta, "usage": {"output_tokens": 7}}, end]


def _responses_outputs(request: Request) -> dict[str, str]:
    outputs = [item for item in request.input if item["type"] == "function_call_output"]
    return {item["call_id"]: _printed(item["output"]) for item in outputs}


def _chat_half(text: str) -> Stream:
    return [fake_chat.chunk({"role": "assistant", "content": ""}), fake_chat.chunk({"content": text})]


def _chat_outputs(request: Request) -> dict[str, str]:
    tools = [message for message in request.body["messages"] if message["role"] == "tool"]
    return {message["tool_call_id"]: _printed(message["content"]) for message in tools}


def _chat_said(request: Request) -> list[str]:
    return [one["content"] for one in request.body["messages"] if one["role"] == "assistant" and one.get("content")]


def _messages_answer(text: str, calls: Sequence[Call]) -> list[Any]:
    said = [fake_messages.says(text)] if text else []
    return fake_messages.answer(*said, *(fake_messages.uses(*call) for call in calls))


def _messages_outputs(request: Request) -> dict[str, str]:
    found = [block for block in fake_messages.blocks_of(request.body, "user") if block["type"] == "tool_result"]
    return {one["tool_use_id"]: _printed(str(one.get("content", ""))) for one in found}


def _messages_said(request: Request) -> list[str]:
    return [one["text"] for one in fake_messages.blocks_of(request.body, "assistant") if one["type"] == "text"]


def _printed(output: str) -> str:
    return output.rpartition("Output:\n")[2].strip()


RESPONSES = Dialect(
    "responses",
    FakeResponses,
    _responses_answer,
    lambda text: [fake_responses.delta(text)],
    _responses_answer,
    lambda kind, text: fake_responses.failed(kind, text),
    _responses_ended,
    _responses_outputs,
    lambda request: request.texts("assistant"),
)
CHAT = Dialect(
    "chat",
    FakeChat,
    lambda text, calls: fake_chat.answer(text, calls=calls),
    _chat_half,
    lambda text, calls: fake_chat.answer(text, calls=calls)[:-3],
    lambda kind, text: raw(b"data: %b\n\n" % json.dumps({"error": {"type": kind, "message": text}}).encode()),
    _chat_ended,
    _chat_outputs,
    _chat_said,
)
MESSAGES = Dialect(
    "messages",
    FakeMessages,
    _messages_answer,
    lambda text: _messages_answer(text, [])[:-3],
    lambda text, calls: _messages_answer(text, calls)[:-2],
    lambda kind, text: {"type": "error", "error": {"type": kind, "message": text}},
    _messages_ended,
    _messages_outputs,
    _messages_said,
)
DIALECTS = (RESPONSES, CHAT, MESSAGES)

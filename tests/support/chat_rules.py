"""What a strict server of the Chat Completions API refuses. Findings are sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any, Final, cast

from tests.support.invariants import top_level_spans

Json = dict[str, Any]

FIELDS: Final = frozenset(
    {
        *("model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls"),
        *("max_tokens", "max_completion_tokens", "response_format", "temperature", "seed", "stop"),
    }
)
_MESSAGE_FIELDS: Final = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls"},
    "tool": {"role", "tool_call_id", "content"},
}
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass
class Dialect:
    """What a server takes or asks for beyond the rules for all: further fields, reasoning, the order of Mistral."""

    fields: frozenset[str] = frozenset()
    message_fields: frozenset[str] = frozenset()
    needs_reasoning: bool = False
    alternates: bool = False
    id_pattern: str = r"[\x21-\x7e]{1,40}"


@dataclass
class Past:
    """What the server remembers: the reasoning it has sent, by model, and the request before."""

    reasoning: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    model: str = ""
    messages: bytes = b""


def find_problems(body: Json, raw: bytes, past: Past, dialect: Dialect) -> list[str]:
    """Everything that is wrong with a request."""
    unknown = set(body) - FIELDS - dialect.fields
    problems = [f"unknown field `{name}`" for name in sorted(unknown)]
    messages = body.get("messages")
    if (
        not isinstance(messages, list)
        or not messages
        or not all(isinstance(one, dict) for one in cast("list[Any]", messages))
    ):
        return [*problems, "`messages` is no list of objects"]
    found = cast("list[Json]", messages)
    # Of its own reasoning a server takes back what it has sent, in the field that it has sent it in.
    own = any(past.reasoning.get(body["model"], ()))
    fields = dialect.message_fields | {"reasoning_content"} if own else dialect.message_fields
    problems += [
        f"messages[{at}]: {problem}" for at, one in enumerate(found) for problem in _shape(one, dialect, fields)
    ]
    if problems:
        return problems
    return [*_tools(body), *_order(found, dialect), *_reasoning(body, past, dialect), *_prefix(body, raw, past)]


def messages_bytes(raw: bytes) -> bytes:
    """The `messages` of a request as they were written, without the closing bracket."""
    start, stop = top_level_spans(raw)["messages"]
    return raw[: stop - 1] if start else b""


def _shape(message: Json, dialect: Dialect, assistant_fields: Set[str]) -> list[str]:
    role = message.get("role")
    if role not in _MESSAGE_FIELDS:
        return [f"unknown role {role!r}"]
    allowed = _MESSAGE_FIELDS[role] | (assistant_fields if role == "assistant" else frozenset[str]())
    problems = [f"unknown field `{name}`" for name in sorted(set(message) - allowed)]
    content, calls = message.get("content"), message.get("tool_calls")
    if role == "assistant" and calls:
        problems += [problem for call in calls for problem in _call(call, dialect)]
    if content is None:
        return problems if role == "assistant" and calls else [*problems, "no content"]
    if isinstance(content, str):
        return problems if content.strip() else [*problems, "empty content"]
    if role != "user" or not isinstance(content, list):
        return [*problems, f"odd content {content!r}"]
    return [*problems, *(f"odd part {part}" for part in cast("list[Json]", content) if not _is_part(part))]


def _is_part(part: Json) -> bool:
    match part:
        case {"type": "text", "text": str(text), **rest}:
            return bool(text) and not rest
        case {"type": "image_url", "image_url": {"url": str(url), **rest}}:
            return url.startswith(("data:image/", "http")) and set(rest) <= {"detail"}
        case _:
            return False


def _call(call: Json, dialect: Dialect) -> list[str]:
    match call:
        case {"id": str(call_id), "type": "function", "function": {"name": str(name), "arguments": str(text), **more}}:
            problems = [] if re.fullmatch(dialect.id_pattern, call_id) else [f"odd id {call_id!r}"]
            problems += [] if _NAME.fullmatch(name) else [f"odd name {name!r}"]
            problems += [f"unknown field `{key}`" for key in [*more, *(set(call) - {"id", "type", "function"})]]
            try:
                is_object = isinstance(json.loads(text), dict)
            except ValueError:
                is_object = False
            return problems if is_object else [*problems, f"arguments are no JSON object: {text!r}"]
        case _:
            return [f"odd call {call}"]


def _tools(body: Json) -> list[str]:
    tools = body.get("tools")
    if tools is None:
        return [f"`{name}` without tools" for name in ("tool_choice", "parallel_tool_calls") if name in body]
    problems = [] if tools else ["`tools` is empty"]
    for tool in tools:
        function = tool.get("function", {})
        if set(tool) != {"type", "function"} or not set(function) <= {"name", "description", "parameters"}:
            problems.append(f"odd tool {tool}")
        elif not _NAME.fullmatch(function["name"]) or function["parameters"].get("type") != "object":
            problems.append(f"odd function {function}")
    return problems


def _order(messages: list[Json], dialect: Dialect) -> list[str]:
    waiting: list[str] = []
    seen: set[str] = set()
    problems: list[str] = []
    before = ""
    for at, message in enumerate(messages):
        role = message["role"]
        if role == "system" and at:
            problems.append(f"messages[{at}]: system is not at the start")
        if role == "tool":
            if message["tool_call_id"] not in waiting:
                problems.append(f"messages[{at}]: no call waits for {message['tool_call_id']}")
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            problems.append(f"messages[{at}]: no output for {waiting}")
            waiting.clear()
        if dialect.alternates and role == "user" and before in ("user", "tool"):
            problems.append(f"Unexpected role 'user' after role '{before}'")
        calls = [call["id"] for call in message.get("tool_calls", ())]
        problems += [f"messages[{at}]: id {call_id} again" for call_id in calls if call_id in seen]
        seen |= set(calls)
        waiting += calls
        before = role
    return problems + ([f"no output for {waiting}"] if waiting else [])


def _reasoning(body: Json, past: Past, dialect: Dialect) -> list[str]:
    sent = past.reasoning.get(body["model"], [])
    problems: list[str] = []
    for message in body["messages"]:
        text = message.get("reasoning_content")
        if text and text not in sent:
            problems.append(f"reasoning that this model has not written: {text!r}")
        if dialect.needs_reasoning and message.get("tool_calls") and text is None:
            problems.append("The `reasoning_content` in the thinking mode must be passed back to the API.")
    return problems


def _prefix(body: Json, raw: bytes, past: Past) -> list[str]:
    if past.model != body["model"] or messages_bytes(raw).startswith(past.messages):
        return []
    now = messages_bytes(raw)
    at = next(i for i, (old, new) in enumerate(zip(past.messages + b"\0", now + b"\1", strict=False)) if old != new)
    return [f"`messages` does not extend the one before: at byte {at}: {past.messages[at:][:80]!r}: {now[at:][:80]!r}"]

"""What a strict server of the Messages API refuses, by the public description of that API. Findings are sentences."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, cast

Json = dict[str, Any]

_FIELDS: Final = {
    *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "stream", "thinking", "output_config"),
    *("metadata", "temperature", "top_p", "top_k", "stop_sequences", "service_tier"),
}
# The fields of each block: those that must be there, and those that may.
_BLOCKS: Final[dict[str, dict[str, tuple[set[str], set[str]]]]] = {
    "user": {
        "text": ({"text"}, {"cache_control"}),
        "image": ({"source"}, {"cache_control"}),
        "tool_result": ({"tool_use_id"}, {"content", "is_error", "cache_control"}),
    },
    "assistant": {
        "text": ({"text"}, {"cache_control"}),
        "thinking": ({"thinking", "signature"}, set()),
        "redacted_thinking": ({"data"}, set()),
        "tool_use": ({"id", "name", "input"}, {"cache_control"}),
    },
}
_TOOL: Final = ({"name", "input_schema"}, {"description", "cache_control", "strict"})
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
_MARK: Final = b',"cache_control":{"type":"ephemeral"}'
_MEDIA: Final = {"image/png", "image/jpeg", "image/gif", "image/webp"}
_THINKING_TYPES: Final = {"thinking", "redacted_thinking"}


@dataclass
class Past:
    """What the server remembers: the thinking it has sent, by model, and the request before."""

    sent_thinking: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    last_body: bytes = b""
    last: Json | None = None
    knows_thinking: bool = True


def find_problems(body: Json, raw: bytes, past: Past) -> list[str]:
    """Everything that is wrong with a request; the shape first, because the rest takes it for granted."""
    if problems := [*_top(body), *_shape(body), *_tools(body)]:
        return problems
    rules: list[Callable[[Json], list[str]]] = [_roles, _calls, _thinking_setting, _marks]
    found = [problem for rule in rules for problem in rule(body)]
    return [*found, *_thinking(body, past), *_prefix(body, raw, past)]


def blocks_of(body: Json, role: str) -> list[Json]:
    return [block for message in body["messages"] if message["role"] == role for block in message["content"]]


def without_marks(raw: bytes) -> bytes:
    """The body up to the end of its last block, without `cache_control`."""
    return raw.replace(_MARK, b"").partition(b',"tools":')[0].partition(b'],"max_tokens":')[0].rstrip(b"]}")


def _top(body: Json) -> list[str]:
    problems = [f"{name}: Extra inputs are not permitted" for name in body if name not in _FIELDS]
    problems += [f"{name}: Field required" for name in ("model", "messages", "max_tokens") if name not in body]
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        problems.append("max_tokens: not a number above 0")
    for name in set(cast("Json", body.get("output_config") or {})) - {"effort", "format"}:
        problems.append(f"output_config.{name}: Extra inputs are not permitted")
    for block in cast("list[Json]", body.get("system") or []):
        problems += _fields(block, {"text"}, {"cache_control"}, "system")
    return problems


def _shape(body: Json) -> list[str]:
    problems: list[str] = []
    for at, message in enumerate(cast("list[Json]", body.get("messages") or [])):
        where = f"messages.{at}"
        role, content = message.get("role"), message.get("content")
        if set(message) != {"role", "content"} or role not in _BLOCKS:
            problems.append(f"{where}: not a message: {message!r}"[:200])
        elif not isinstance(content, list) or not content:
            problems.append(f"{where}: all messages must have non-empty content")
        else:
            for index, block in enumerate(cast("list[Json]", content)):
                problems += _block(block, _BLOCKS[role], f"{where}.content.{index}")
    return problems or ([] if body.get("messages") else ["messages: at least one message is required"])


def _block(block: Json, known: dict[str, tuple[set[str], set[str]]], where: str) -> list[str]:
    kind = str(block.get("type"))
    if kind not in known:
        return [f"{where}: unexpected block `{kind}`"]
    problems = _fields(block, *known[kind], where)
    if problems:
        return problems
    match block:
        case {"type": "text", "text": text} if not isinstance(text, str) or not text.strip():
            return [f"{where}: text content blocks must contain non-whitespace text"]
        case {"type": "image", "source": {"type": "base64", "media_type": media, "data": str()}} if media in _MEDIA:
            return []
        case {"type": "image", "source": {"type": "url", "url": str()}}:
            return []
        case {"type": "image"}:
            return [f"{where}: not a picture"]
        case {"type": "tool_use", "id": call_id, "name": name, "input": value}:
            fine = isinstance(value, dict) and _ID.fullmatch(call_id) and _NAME.fullmatch(name)
            return [] if fine else [f"{where}: not a call: {call_id!r} {name!r} {value!r}"[:200]]
        case {"type": "tool_result", "is_error": True} if not block.get("content"):
            return [f"{where}.tool_result: content cannot be empty if `is_error` is true"]
        case {"type": "tool_result", "content": list()}:
            parts: list[Json] = block["content"]
            if block.get("is_error") and any(part["type"] != "text" for part in parts):
                return [f"{where}.tool_result: all content must be type `text` if `is_error` is true"]
            inner = {kind: _BLOCKS["user"][kind] for kind in ("text", "image")}
            return [problem for part in parts for problem in _block(part, inner, f"{where}.content")]
        case _:
            return []


def _fields(value: Json, needed: set[str], allowed: set[str], where: str) -> list[str]:
    problems = [f"{where}.{name}: Field required" for name in needed - set(value)]
    extra = set(value) - needed - allowed - {"type"}
    return problems + [f"{where}.{name}: Extra inputs are not permitted" for name in extra]


def _tools(body: Json) -> list[str]:
    tools = cast("list[Json]", body.get("tools") or [])
    problems = [problem for tool in tools for problem in _fields(tool, *_TOOL, f"tools.{tool.get('name')}")]
    problems += [f"tools: {tool.get('name')!r}" for tool in tools if not _NAME.fullmatch(str(tool.get("name")))]
    problems += [f"tools.{tool['name']}: no object" for tool in tools if tool["input_schema"].get("type") != "object"]
    if "tool_choice" in body and not tools:
        problems.append("tool_choice: may only be specified while providing tools")
    return problems


def _roles(body: Json) -> list[str]:
    roles = [message["role"] for message in body["messages"]]
    problems = [f"roles do not alternate: {roles}"] if any(a == b for a, b in pairwise(roles)) else []
    if roles[0] != "user":
        problems.append("messages: first message must use the user role")
    if roles[-1] != "user":
        problems.append("This model does not support assistant message prefill")
    return problems


def _calls(body: Json) -> list[str]:
    messages = body["messages"]
    problems: list[str] = []
    seen: set[str] = set()
    for at, message in enumerate(messages):
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        problems += [f"messages.{at}: `tool_use` ids must be unique: {call}" for call in calls if call in seen]
        seen |= set(calls)
        before: list[Json] = messages[at - 1]["content"] if at else []
        expected = [block["id"] for block in before if block["type"] == "tool_use"]
        kinds = [block["type"] for block in message["content"]]
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        if message["role"] == "user" and sorted(results) != sorted(expected):
            problems.append(f"messages.{at}: calls {expected} and results {results} do not pair")
        if results and kinds[: len(results)] != ["tool_result"] * len(results):
            problems.append(f"messages.{at}: tool results must come first: {kinds}")
    return problems


def _thinking_setting(body: Json) -> list[str]:
    setting = cast("Json", body.get("thinking") or {})
    newer = re.search(r"-(4-[6-9]|[5-9])", body["model"]) is not None
    match setting:
        case {"type": "enabled", "budget_tokens": int(budget)} if len(setting) == 2:
            if newer:
                return ['"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive"']
            return [] if 1024 <= budget < body["max_tokens"] else [f"thinking.budget_tokens: {budget}"]
        case {"type": "adaptive"} if set(setting) <= {"type", "display"}:
            return [] if newer else ["adaptive thinking is not supported on this model"]
        case _:
            return [f"thinking: {setting!r}"] if setting else []


def _thinking(body: Json, past: Past) -> list[str]:
    sent = past.sent_thinking.get(body["model"], [])
    problems: list[str] = []
    for at, message in enumerate(body["messages"]):
        thoughts = [block for block in message["content"] if block["type"] in _THINKING_TYPES and past.knows_thinking]
        problems += [f"messages.{at}: Invalid `signature` in `thinking` block" for one in thoughts if one not in sent]
        if message["content"][-1]["type"] in _THINKING_TYPES:
            problems.append(f"messages.{at}: the final block in an assistant message cannot be `thinking`")
    return problems


def _marks(body: Json) -> list[str]:
    count = json.dumps(body).count('"cache_control"')
    return [f"A maximum of 4 blocks with cache_control may be provided. Found {count}."] if count > 4 else []


def _prefix(body: Json, raw: bytes, past: Past) -> list[str]:
    last = past.last
    if last is None or last["model"] != body["model"] or past.last_body == b"":
        return []
    before, now = without_marks(past.last_body), without_marks(raw)
    if not now.startswith(before):
        at = next((i for i, (a, b) in enumerate(zip(before, now, strict=False)) if a != b), len(now))
        return [f"not an extension: {before[max(0, at - 60) : at + 60]!r} became {now[max(0, at - 60) : at + 60]!r}"]
    behind = [at for at, mark in zip(_mark_places(raw), _mark_places(past.last_body), strict=False) if at < mark]
    return [f"a mark of the cache moved backwards, to {behind}"] if behind else []


def _mark_places(raw: bytes) -> list[int]:
    """How far each mark is from the beginning, those before it not counted; the last first."""
    places: list[int] = []
    at = raw.find(_MARK)
    while at >= 0:
        places.append(at - len(places) * len(_MARK))
        at = raw.find(_MARK, at + 1)
    return places[::-1]

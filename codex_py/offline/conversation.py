"""A request body as a conversation: the last prompt, the skills injected with it, and the tool calls since."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from codex_py.protocol.encoding import as_list, as_object

# Context that the host writes as the user. None of it is a prompt.
_CONTEXT: Final = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|permissions instructions|skills_instructions|skill_references"
    r"|turn_aborted|user_shell_command|subagent_notification|hook_prompt|content_filter_guidance|conversation_summary)>"
    r"|<image name=|</image>|# AGENTS\.md instructions|These AGENTS\.md instructions replace)"
)
_SKILL: Final = re.compile(r"\A\s*<skill>\s*<name>([^<\n]*)</name>\s*<path>([^\n]*?)</path>\n?")
_CWD: Final = re.compile(r"\A\s*<environment_context>.*?<cwd>([^<\n]+)</cwd>", re.DOTALL)
_STDIN: Final = "<stdin>\n"
_CALLS: Final = ("function_call", "custom_tool_call")


class BodyError(ValueError):
    """The body is not a Responses request; the message names the field."""


class InjectedSkill(NamedTuple):
    name: str
    path: str
    body: str


class PastCall(NamedTuple):
    """A tool call made since the prompt, as sent, and its output."""

    tool: str
    payload: str
    output: str


class Conversation(NamedTuple):
    """`tools` maps the name of each offered tool to its spec, `calls` are those made since the prompt."""

    prompt: str
    skills: tuple[InjectedSkill, ...]
    calls: tuple[PastCall, ...]
    tools: Mapping[str, dict[str, Any]]
    cwd: str | None


def read_conversation(body: object) -> Conversation:
    """Read a decoded request body; raise `BodyError` for one that no provider would take."""
    if not _is(body, dict):
        raise BodyError("the body must be a JSON object")
    fields = as_object(body)
    items = _items(fields.get("input"))
    tools = fields.get("tools")
    if not (tools is None or _is(tools, list)):
        raise BodyError("`tools` must be an array")
    specs = [as_object(tool) for tool in as_list(tools)]
    at = next((index for index in range(len(items) - 1, -1, -1) if _prompt_in(items[index])), None)
    cwds = [
        found[1].strip() for item in items if _is_user(item) for text in _texts(item) if (found := _CWD.match(text))
    ]
    return Conversation(
        "" if at is None else _prompt_in(items[at]).partition(_STDIN)[0].strip(),
        () if at is None else tuple(_skills_at(items, at)),
        () if at is None else tuple(_calls_in(items[at + 1 :])),
        {name: spec for spec in specs if isinstance(name := spec.get("name"), str)},
        cwds[-1] if cwds else None,
    )


def last_answer_id(body: object) -> str:
    """The id of the first item of the model's latest answer in `input`: everything before it was sent before."""
    first = ""
    for item in map(as_object, reversed(as_list(as_object(body).get("input")))):
        if item.get("type") in (*_CALLS, "reasoning") or item.get("role") == "assistant":
            first = str(item.get("call_id") or item.get("id") or "")
        elif first:
            break
    return first


def _items(value: object) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"type": "message", "role": "user", "content": value}]
    if not _is(value, list):
        raise BodyError("`input` must be a string or an array of items")
    items = as_list(value)
    for index, item in enumerate(items):
        if not _is(item, dict):
            raise BodyError(f"`input[{index}]` must be an object")
        content = as_object(item).get("content")
        if content is not None and not _is(content, str) and not _is(content, list):
            raise BodyError(f"`input[{index}].content` must be a string or an array")
    return [as_object(item) for item in items]


def _is(value: object, type_: type) -> bool:
    """Does not narrow: knowing that a decoded value is an array says nothing about its items."""
    return isinstance(value, type_)


def _is_user(item: dict[str, Any]) -> bool:
    return item.get("role") == "user" and item.get("type", "message") == "message"


def _texts(item: dict[str, Any], key: str = "content") -> list[str]:
    value = item.get(key)
    texts = [value] if isinstance(value, str) else [as_object(content).get("text") for content in as_list(value)]
    return [text for text in texts if isinstance(text, str)]


def _prompt_in(item: dict[str, Any]) -> str:
    """The text that the user wrote in an item; empty for context and for every other item."""
    texts = _texts(item) if _is_user(item) else []
    written = [text for text in texts if not _CONTEXT.match(text) and not _SKILL.match(text)]
    return "\n\n".join(written) if any(text.strip() for text in written) else ""


def _skills_at(items: list[dict[str, Any]], at: int) -> list[InjectedSkill]:
    """The skills injected with a prompt: before it back to the turn before, and after it up to the first answer."""
    first, last = at, at
    while first > 0 and _belongs_to_prompt(items[first - 1]):
        first -= 1
    while last + 1 < len(items) and _belongs_to_prompt(items[last + 1]):
        last += 1
    texts = [text for item in items[first : last + 1] if _is_user(item) for text in _texts(item)]
    found = [(head, text[head.end() :]) for text in texts if (head := _SKILL.match(text))]
    return [
        InjectedSkill(head[1].strip(), head[2].strip(), rest.rstrip().removesuffix("</skill>")) for head, rest in found
    ]


def _belongs_to_prompt(item: dict[str, Any]) -> bool:
    if item.get("type", "message") != "message" or item.get("role") == "assistant":
        return False
    return not _prompt_in(item) and not any(text.startswith("<turn_aborted>") for text in _texts(item))


def _calls_in(items: list[dict[str, Any]]) -> list[PastCall]:
    outputs = {
        str(item.get("call_id")): "\n".join(_texts(item, "output"))
        for item in items
        if item.get("type") in ("function_call_output", "custom_tool_call_output")
    }
    calls = [item for item in items if item.get("type") in _CALLS and str(item.get("call_id")) in outputs]
    return [PastCall(str(item.get("name")), _payload(item), outputs[str(item.get("call_id"))]) for item in calls]


def _payload(call: dict[str, Any]) -> str:
    payload = call.get("input" if call.get("type") == "custom_tool_call" else "arguments")
    return payload if isinstance(payload, str) else ""

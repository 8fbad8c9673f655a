"""A request body read as a conversation: the last prompt, the skills that came with it, and what was done since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.protocol.encoding import as_list, as_object

# Context that the host writes in the user's name. None of it is a prompt.
_CONTEXT: Final = (
    "<environment_context>",
    "# AGENTS.md instructions",
    "These AGENTS.md instructions replace",
    "<user_instructions>",
    "<permissions instructions>",
    "<skills_instructions>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<hook_prompt>",
    "<content_filter_guidance>",
    "<conversation_summary>",
    "<image name=",
    "</image>",
)
_SKILL: Final = Pattern(r"\A\s*<skill>\s*<name>([^<\n]*)</name>\s*<path>([^\n]*?)</path>\n?")
_CWD: Final = Pattern(r"<cwd>([^<\n]+)</cwd>")
_STDIN: Final = "<stdin>\n"
_CALLS: Final = ("function_call", "custom_tool_call")
_OUTPUTS: Final = ("function_call_output", "custom_tool_call_output")


class BodyError(ValueError):
    """The body is not a Responses request; the message names the field."""


class Skill(NamedTuple):
    name: str
    path: str
    body: str


class Step(NamedTuple):
    """A call made since the prompt, as sent, and what the tool answered."""

    tool: str
    payload: str
    output: str


class Conversation(NamedTuple):
    """`tools` maps the name of each offered tool to its spec; `schema` is the JSON schema asked for, if one is."""

    prompt: str
    skills: tuple[Skill, ...]
    steps: tuple[Step, ...]
    tools: Mapping[str, dict[str, Any]]
    cwd: str | None
    schema: dict[str, Any] | None


def read_conversation(body: object) -> Conversation:
    """Read a decoded request body; raise `BodyError` for one that no provider would take."""
    if not _is_object(body):
        raise BodyError("the body must be a JSON object")
    fields = as_object(body)
    items = _items(fields.get("input"))
    at = _last_prompt(items)
    return Conversation(
        _prompt_text(items[at]) if at is not None else "",
        _skills_around(items, at),
        _steps_after(items, at),
        _tools(fields.get("tools")),
        _cwd(items),
        _schema(fields.get("text")),
    )


def last_answer_id(body: object) -> str:
    """The id of the first item of the model's latest answer in `input`: what came before it was sent before."""
    first = ""
    for item in reversed(as_list(as_object(body).get("input"))):
        kind, fields = as_object(item).get("type"), as_object(item)
        if kind in _CALLS or kind == "reasoning" or fields.get("role") == "assistant":
            first = str(fields.get("call_id") or fields.get("id") or "")
        elif first:
            break
    return first


def _items(given: object) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    if not _is_array(given):
        raise BodyError("`input` must be a string or an array of items")
    for position, item in enumerate(as_list(given)):
        if not _is_object(item):
            raise BodyError(f"`input[{position}]` must be an object")
        content = as_object(item).get("content")
        if not (content is None or _is_text(content) or _is_array(content)):
            raise BodyError(f"`input[{position}].content` must be a string or an array")
    return [as_object(item) for item in as_list(given)]


# Checks that do not narrow: what is inside a decoded array or object is not known by knowing what it is.
def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_array(value: object) -> bool:
    return isinstance(value, list)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    texts = [as_object(part).get("text") for part in as_list(value)]
    return [text for text in texts if isinstance(text, str)]


def _is_context(text: str) -> bool:
    return text.lstrip().startswith(_CONTEXT)


def _prompt_text(item: dict[str, Any]) -> str:
    texts = [text for text in _texts(item.get("content")) if not _is_context(text) and not _SKILL.match(text)]
    return "\n\n".join(texts).partition(_STDIN)[0].strip()


def _is_user(item: dict[str, Any]) -> bool:
    return item.get("role") == "user" and item.get("type", "message") == "message"


def _last_prompt(items: list[dict[str, Any]]) -> int | None:
    for position in range(len(items) - 1, -1, -1):
        if _is_user(items[position]) and _is_prompt(items[position]):
            return position
    return None


def _is_prompt(item: dict[str, Any]) -> bool:
    return any(
        text.strip() and not _is_context(text) and not _SKILL.match(text) for text in _texts(item.get("content"))
    )


def _skills_around(items: list[dict[str, Any]], at: int | None) -> tuple[Skill, ...]:
    """The skills injected with the prompt: before it back to the turn before, and after it up to the first answer."""
    if at is None:
        return ()
    first, last = at, at
    while first > 0 and _goes_with_the_prompt(items[first - 1]):
        first -= 1
    while last + 1 < len(items) and _goes_with_the_prompt(items[last + 1]):
        last += 1
    return tuple(skill for item in items[first : last + 1] if _is_user(item) for skill in _skills_in(item))


def _goes_with_the_prompt(item: dict[str, Any]) -> bool:
    if item.get("type", "message") != "message" or item.get("role") == "assistant":
        return False
    return not _is_prompt(item) and not any(text.startswith("<turn_aborted>") for text in _texts(item.get("content")))


def _skills_in(item: dict[str, Any]) -> list[Skill]:
    skills: list[Skill] = []
    for text in _texts(item.get("content")):
        if head := _SKILL.match(text):
            body = text[head.end() :].rstrip().removesuffix("</skill>")
            skills.append(Skill(head[1].strip(), head[2].strip(), body))
    return skills


def _steps_after(items: list[dict[str, Any]], at: int | None) -> tuple[Step, ...]:
    since = items[at + 1 :] if at is not None else []
    outputs = {
        str(item.get("call_id")): "\n".join(_texts(item.get("output")))
        for item in since
        if item.get("type") in _OUTPUTS
    }
    return tuple(
        Step(str(item.get("name")), _payload(item), outputs[str(item.get("call_id"))])
        for item in since
        if item.get("type") in _CALLS and str(item.get("call_id")) in outputs
    )


def _payload(call: dict[str, Any]) -> str:
    payload = call.get("input" if call.get("type") == "custom_tool_call" else "arguments")
    return payload if isinstance(payload, str) else ""


def _tools(given: object) -> dict[str, dict[str, Any]]:
    if given is not None and not _is_array(given):
        raise BodyError("`tools` must be an array")
    specs = [as_object(tool) for tool in as_list(given)]
    return {name: spec for spec in specs if isinstance(name := spec.get("name"), str)}


def _cwd(items: list[dict[str, Any]]) -> str | None:
    for item in reversed(items):
        if _is_user(item):
            for text in _texts(item.get("content")):
                if text.lstrip().startswith("<environment_context>") and (cwd := _CWD.search(text)):
                    return cwd[1].strip()
    return None


def _schema(text: object) -> dict[str, Any] | None:
    wanted = as_object(as_object(text).get("format"))
    match wanted.get("type"):
        case "json_schema":
            return as_object(wanted.get("schema"))
        case "json_object":
            return {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        case _:
            return None

"""Items of a history that a server refuses: which ones a refusal names, and the plain texts that take their place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from codex_py.model.pictures import without_pictures
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.protocol.items import ResponseItem, message, message_of_content
from codex_py.text.tokens import BYTES_PER_TOKEN, truncate_middle

# `input[3].output`, `messages.2.content.0.text`, `messages[4].tool_calls[0]`.
_PLACE: Final = (
    r"\b(input|messages)(?:\[(\d{1,6})\]|\.(\d{1,6}))(?:\.(content|tool_calls)(?:\[(\d{1,6})\]|\.(\d{1,6})))?"
)
_TEXT_LIMIT: Final = r"(?:output|content|text|arguments|input)\b.{0,80}maximum length (?:of )?(\d{3,9})"
# Fields that say nothing by which two items could be told apart.
_COMMON: Final = frozenset({"type", "role", "id", "status", "name", "made_by", "cache_control", "detail"})
_IDS: Final = ("call_id", "tool_call_id", "tool_use_id")
_ONE_BY_ONE: Final = frozenset(
    {"message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
)
# A text that stands for an item of an unknown type, or is refused a second time.
_SHORT: Final = 2_000


def names_item(sentence: str) -> bool:
    """Whether a sentence names an item of the request."""
    return re.search(_PLACE, sentence) is not None


def refused_items(sentence: str, body: bytes, items: Sequence[bytes]) -> tuple[int, ...]:
    """The indexes of the items that a refusal of the request `body` names, with the other half of an exchange."""
    found = re.search(_PLACE, sentence)
    if found is None:
        return ()
    field, first, second, inner, third, fourth = found.groups()
    element = _at(as_object(decode_json(body)).get(field), int(first or second))
    parts = as_list(as_object(element).get(inner)) if inner and field == "messages" else []
    part = _at(parts, int(third or fourth)) if parts else None
    values = [_without_origin(item) for item in items]
    named = _matching(as_object(part), values) or _matching(as_object(element), values)
    # Other items of the same form, such as all reasoning with `content`, would be refused one after the other.
    forms = [_form(values[index]) for index in named if values[index].get("type") not in _ONE_BY_ONE]
    return tuple(index for index, value in enumerate(values) if index in named or _form(value) in forms)


def _form(value: dict[str, Any]) -> tuple[object, frozenset[str]]:
    return value.get("type"), frozenset(value)


def _at(values: object, index: int) -> object:
    values = as_list(values)
    return values[index] if index < len(values) else None


def _matching(wanted: dict[str, Any], values: Sequence[dict[str, Any]]) -> tuple[int, ...]:
    calls = map(as_object, as_list(wanted.get("tool_calls")))
    ids = {call_id for value in (wanted, *calls) for call_id in _ids(value)}
    named = {index for index, value in enumerate(values) if ids & set(_ids(value))}
    if not named and wanted:
        # A message has no id, and a call may have been sent with another one than it is stored with.
        texts = set(_texts(wanted))
        named = {index for index, value in enumerate(values) if value == wanted or texts & _whole_texts(value)}
    halves = {call_id for index in named for call_id in _ids(values[index])}
    return tuple(index for index, value in enumerate(values) if index in named or halves & set(_ids(value)))


def _whole_texts(value: dict[str, Any]) -> set[str]:
    """The texts of an item, also as one, which is how some APIs are sent them."""
    return {*_texts(value), "\n\n".join(_message_texts(value.get("content")))} - {""}


def _ids(value: dict[str, Any]) -> list[str]:
    keys = (*_IDS, "id") if value.get("type") in ("tool_use", "function") else _IDS
    return [found for key in keys if isinstance(found := value.get(key), str)]


def _texts(value: object, key: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if key not in _COMMON and value.strip():
            yield value
    elif fields := as_object(value):
        for name, inner in fields.items():
            yield from _texts(inner, name)
    else:
        for inner in as_list(value):
            yield from _texts(inner, key)


def _without_origin(item: bytes) -> dict[str, Any]:
    value = ResponseItem(item).decode()
    value.pop("made_by", None)
    return value


def plain_texts(item: ResponseItem, refusal: str) -> list[ResponseItem]:
    """The item as messages of text with the same meaning, as long as the refusal allows; none for sealed reasoning."""
    value = as_object(decode_json(without_pictures(item.encoded)))
    found = re.search(_TEXT_LIMIT, refusal)
    limit = int(found[1]) // BYTES_PER_TOKEN if found else None
    match value.get("type"):
        case "message":
            role = str(value.get("role") or "user")
            kind = "output_text" if role == "assistant" else "input_text"
            texts = [_cut(text, limit) for text in _message_texts(value.get("content"))]
            return [message_of_content(role, [{"type": kind, "text": text} for text in texts])] if texts else []
        case "reasoning":
            text = "\n\n".join([*_texts(value.get("summary")), *_texts(value.get("content"))])
            return [message("developer", _cut(f"Reasoning of an earlier answer:\n{text}", limit))] if text else []
        case "function_call" | "custom_tool_call":
            made = value.get("arguments", value.get("input"))
            made = made if isinstance(made, str) else encode_json(made).decode()
            return [message("developer", _cut(f"A call of the tool {value.get('name')} was made:\n{made}", limit))]
        case "function_call_output" | "custom_tool_call_output":
            text = "\n".join(_message_texts(value.get("output")))
            return [message("developer", _cut(f"The output of that call was:\n{text}", limit))]
        case item_type:
            text = truncate_middle(encode_json(value).decode(), _SHORT)
            return [message("developer", _cut(f"An item of the type {item_type}:\n{text}", limit))]


def _message_texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    texts = [part.get("text") or part.get("refusal") for part in map(as_object, as_list(content))]
    return [text for text in texts if isinstance(text, str) and text]


def _cut(text: str, limit: int | None) -> str:
    # The note on what was cut takes a few characters itself.
    return text if limit is None else truncate_middle(text, max(limit - 20, 1))

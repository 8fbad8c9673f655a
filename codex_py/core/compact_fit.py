"""Making the items of a request fewer and shorter, so that it fits. Pure: what to do without, not when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.protocol.items import ResponseItem, exchange_of
from codex_py.text.tokens import counted_bytes
from codex_py.text.truncate import BYTES_PER_TOKEN, truncate_middle

_TEXT_TOKENS: Final = 2_000
_NO_PICTURE: Final = {"type": "input_text", "text": "[a picture was here]"}


def without_oldest(items: Sequence[ResponseItem], share: float) -> list[ResponseItem]:
    """The items without the oldest ones, at least one of them and so many that `share` of the weight is gone.

    A call goes together with its output. Empty when nothing would be left.
    """
    weights = [counted_bytes(item.encoded) for item in items]
    goal, gone, start = sum(weights) * share, 0, 0
    while start < len(items) and (start == 0 or gone < goal):
        gone += weights[start]
        start += 1
    return paired(items[start:])


def with_short_texts(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items with at most 2,000 tokens of each text, its ends, and without pictures where an item is longer.

    What is long and no text, such as sealed reasoning, is left out.
    """
    return paired([short for item in items if (short := _shortened(item)) is not None])


def paired(items: Sequence[ResponseItem]) -> list[ResponseItem]:
    """The items without the calls that nothing answers, and without the outputs that answer no call before them."""
    retained: list[ResponseItem | None] = list(items)
    waiting: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        exchange = exchange_of(item)
        if exchange is None:
            continue
        if not exchange.is_output:
            waiting.setdefault(exchange.call_id, []).append(index)
        elif not waiting.get(exchange.call_id):
            retained[index] = None
        else:
            waiting[exchange.call_id].pop(0)
    for indexes in waiting.values():
        for index in indexes:
            retained[index] = None
    return [item for item in retained if item is not None]


def _shortened(item: ResponseItem) -> ResponseItem | None:
    if len(item.encoded) <= _TEXT_TOKENS * BYTES_PER_TOKEN:
        return item
    value = item.decode()
    match item.type:
        case "message":
            value["content"] = _short(value.get("content"))
        case "function_call_output" | "custom_tool_call_output":
            value["output"] = _short(value.get("output"))
        case "custom_tool_call":
            value["input"] = _short(value.get("input"))
        case "function_call":
            # Servers read the arguments, so that they have to stay JSON.
            value["arguments"] = encode_json({"shortened": _short(value.get("arguments"))}).decode()
        case _:
            return None
    return ResponseItem.from_wire(value)


def _short(content: object) -> Any:
    """A text, or parts of content, cut."""
    if isinstance(content, str):
        return truncate_middle(content, _TEXT_TOKENS)
    content_parts: list[dict[str, Any]] = [as_object(part) for part in as_list(content)]
    return [
        {**part, "text": _short(part["text"])} if isinstance(part.get("text"), str) else _NO_PICTURE
        for part in content_parts
    ]

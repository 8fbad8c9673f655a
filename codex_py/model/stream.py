"""What a model's answer consists of: Responses stream events as values."""

from __future__ import annotations

import time
from typing import Any, Final, TypeAlias

from codex_py.model.failures import incomplete_answer, stream_failure
from codex_py.protocol.encoding import as_object, decode_json, uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value


class Created(Value):
    response_id: str


class StreamTextDelta(Value):
    text: str


class StreamReasoningDelta(Value):
    text: str


class ArgumentsDelta(Value):
    """A piece of a tool call's arguments; `ItemDone` brings them whole."""

    text: str


class ToolCallStarted(Value):
    """The model has begun to write a call of this tool; `ItemDone` brings it."""

    name: str = ""


class ItemDone(Value):
    item: ResponseItem


class Completed(Value):
    """The answer is whole. `end_turn` False asks for another request even without a call."""

    response_id: str
    usage: TokenUsage | None
    end_turn: bool | None


ResponseEvent: TypeAlias = (
    Created | StreamTextDelta | StreamReasoningDelta | ArgumentsDelta | ToolCallStarted | ItemDone | Completed
)

_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})


def parse_event(data: bytes) -> ResponseEvent | None:
    """Read the data of one server-sent event; None for what is unknown, unparsable or of no use here.

    Raises `ModelError` for the events that say the answer has failed: `response.failed`, `response.incomplete` and a
    top-level `error`.
    """
    try:
        # Copies of a large event must not outlive their use: `data` is let go before its text is parsed.
        text, data = data.decode("utf-8", "replace"), b""
        value = as_object(decode_json(text))
    except ValueError:
        return None
    del text
    return _event(value)


def _event(value: dict[str, Any]) -> ResponseEvent | None:
    match value:
        case {"type": "response.output_text.delta", "delta": str(delta)}:
            return StreamTextDelta(delta)
        case {"type": "response.reasoning_summary_text.delta" | "response.reasoning_text.delta", "delta": str(delta)}:
            return StreamReasoningDelta(delta)
        case {
            "type": "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta",
            "delta": str(delta),
        }:
            return ArgumentsDelta(delta)
        case {"type": "response.reasoning_summary_part.added", "summary_index": int(index)} if index > 0:
            # The parts of a summary are paragraphs.
            return StreamReasoningDelta("\n\n")
        case {"type": "response.output_item.done", "item": {"type": str(item_type)}} if item_type:
            return _item_done(value["item"])
        case {"type": "response.output_item.added", "item": {"type": str(item_type)}} if item_type in _CALLS:
            return ToolCallStarted(str(value["item"].get("name") or ""))
        case {"type": "response.created"}:
            return Created(_response_id(as_object(value.get("response"))))
        case {"type": "response.completed"}:
            return _completed(as_object(value.get("response")))
        case {"type": "response.failed"}:
            raise stream_failure(as_object(as_object(value.get("response")).get("error")), now=time.time())
        case {"type": "response.incomplete"}:
            details = as_object(as_object(value.get("response")).get("incomplete_details"))
            raise incomplete_answer(str(details.get("reason") or ""))
        case {"type": "error"}:
            raise stream_failure(_top_level_error(value), now=time.time())
        case _:
            return None


def _item_done(item: dict[str, Any]) -> ItemDone | None:
    call_id = item.get("call_id")
    if item["type"] in _CALLS and not (isinstance(call_id, str) and call_id):
        # From a server that gives calls none. It could not be answered, and what the model wanted would be lost.
        item = {**item, "call_id": f"call_{uuid7()}"}
    if not _can_go_back(item):
        return None
    try:
        return ItemDone(ResponseItem.from_wire(item))
    except ValueError:
        # A number that no JSON of ours could send back.
        return None


def _can_go_back(item: dict[str, Any]) -> bool:
    """Whether the item may stand in a request: one that no provider takes would end the session for good."""
    match item:
        case {"type": "message"}:
            return isinstance(item.get("role"), str) and isinstance(item.get("content"), list | str)
        case {"type": str(item_type)} if item_type.removesuffix("_output") in _CALLS:
            return isinstance(item.get("call_id"), str)
        case _:
            return True


def _completed(response: dict[str, Any]) -> Completed:
    usage, end_turn = response.get("usage"), response.get("end_turn")
    return Completed(
        _response_id(response),
        TokenUsage.from_wire(usage) if as_object(usage) else None,
        end_turn if isinstance(end_turn, bool) else None,
    )


def _response_id(response: dict[str, Any]) -> str:
    value = response.get("id")
    return value if isinstance(value, str) else ""


def _top_level_error(event: dict[str, Any]) -> dict[str, Any]:
    """The error of an `error` event, which some servers nest and some lay flat."""
    error = event.get("error")
    if nested := as_object(error):
        return nested
    # `type` here is the event's own.
    flat = {key: value for key, value in event.items() if key != "type"}
    return {**flat, "message": error} if isinstance(error, str) else flat

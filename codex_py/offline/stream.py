"""A reply as the events of a Responses stream."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Iterator
from typing import Any, Final, TypeAlias

from codex_py.offline.steps import Call
from codex_py.protocol.encoding import encode_json

MODEL_NAME: Final = "offline-rules"
_PIECE: Final = re.compile(r"\s*\S{1,200}(?:\s+\S{1,40}){0,5}\s*|\s+")
_BYTES_PER_TOKEN: Final = 4
# The events of an item; gives back the item as it is in the end.
_ItemEvents: TypeAlias = Generator[dict[str, Any], None, dict[str, Any]]


def response_events(reply: Call | str, *, request_bytes: int, cached_bytes: int) -> Iterator[dict[str, Any]]:
    """Every event of the answer in order, `response.completed` last. Ids are fresh; a token is four bytes."""
    response: dict[str, Any] = {"id": f"resp_{_new_id()}", "object": "response", "created_at": int(time.time())}
    response |= {"status": "in_progress", "model": MODEL_NAME, "output": []}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    item = yield from (_call_events(reply) if isinstance(reply, Call) else _message_events(reply))
    sizes = (request_bytes, cached_bytes, len(encode_json([item])))
    sent, cached, received = (-(-size // _BYTES_PER_TOKEN) for size in sizes)
    usage = {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": min(cached, sent)},
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + received,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def encode_event(event: dict[str, Any], number: int) -> bytes:
    """One event as server-sent bytes."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode_json({**event, "sequence_number": number}))


def _message_events(text: str) -> _ItemEvents:
    location = {"output_index": 0, "item_id": f"msg_{_new_id()}"}
    item: dict[str, Any] = {"type": "message", "id": location["item_id"], "status": "in_progress"}
    item |= {"role": "assistant", "content": []}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    content: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    inside = {**location, "content_index": 0}
    yield {"type": "response.content_part.added", **inside, "part": content}
    for piece in _PIECE.findall(text):
        yield {"type": "response.output_text.delta", **inside, "delta": piece}
    yield {"type": "response.output_text.done", **inside, "text": text}
    content = {**content, "text": text}
    yield {"type": "response.content_part.done", **inside, "part": content}
    item = {**item, "status": "completed", "content": [content]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    return item


def _call_events(call: Call) -> _ItemEvents:
    item_type, field = ("custom_tool_call", "input") if call.is_custom else ("function_call", "arguments")
    item_id, call_id = f"{item_type[0]}c_{_new_id()}", f"call_{_new_id()}"
    item = {"type": item_type, "id": item_id, "status": "in_progress", "call_id": call_id}
    item |= {"name": call.tool, field: ""}
    location = {"output_index": 0, "item_id": item["id"]}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": f"response.{item_type}_{field}.delta", **location, "delta": call.payload}
    yield {"type": f"response.{item_type}_{field}.done", **location, field: call.payload}
    item = {**item, "status": "completed", field: call.payload}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    return item


def _new_id() -> str:
    """A unique id: a conversation may hold the same prompt, and so the same calls, many times."""
    return os.urandom(12).hex()

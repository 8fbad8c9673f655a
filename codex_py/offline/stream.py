"""A reply as the events of a Responses stream."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final

from codex_py.offline.pattern import Pattern
from codex_py.offline.play import Call, Make, Reply, Say
from codex_py.protocol.encoding import encode_json

MODEL_NAME: Final = "offline-rules"
_PIECE: Final = Pattern(r"\s*\S{1,200}(?:\s+\S{1,40}){0,5}\s*|\s+")
_BYTES_PER_TOKEN: Final = 4


def response_events(reply: Reply, *, request_bytes: int, cached_bytes: int) -> Iterator[dict[str, Any]]:
    """Every event of the answer in order, `response.completed` last; ids are fresh, `usage` is bytes / 4."""
    response: dict[str, Any] = {
        "id": f"resp_{_fresh()}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": MODEL_NAME,
        "output": [],
    }
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    output: list[dict[str, Any]] = []
    match reply:
        case Say(text):
            yield from _message_events(text, output)
        case Make(calls):
            for call in calls:
                yield from _call_events(call, output)
    usage = _usage(request_bytes, cached_bytes, len(encode_json(output)))
    yield {
        "type": "response.completed",
        "response": {**response, "status": "completed", "output": output, "usage": usage},
    }


def whole_response(reply: Reply, *, request_bytes: int, cached_bytes: int) -> dict[str, Any]:
    """The answer to a request that did not ask for a stream."""
    events = list(response_events(reply, request_bytes=request_bytes, cached_bytes=cached_bytes))
    return events[-1]["response"]


def encode_event(event: dict[str, Any], number: int) -> bytes:
    """One event as server-sent bytes."""
    return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), encode_json({**event, "sequence_number": number}))


def _message_events(text: str, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    place = {"output_index": len(output), "item_id": f"msg_{_fresh()}"}
    item: dict[str, Any] = {
        "type": "message",
        "id": place["item_id"],
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    yield {"type": "response.output_item.added", "output_index": place["output_index"], "item": item}
    part: dict[str, Any] = {"type": "output_text", "text": "", "annotations": []}
    inside = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **inside, "part": part}
    for piece in _PIECE.findall(text):
        yield {"type": "response.output_text.delta", **inside, "delta": piece}
    yield {"type": "response.output_text.done", **inside, "text": text}
    part = {**part, "text": text}
    yield {"type": "response.content_part.done", **inside, "part": part}
    done = {**item, "status": "completed", "content": [part]}
    output.append(done)
    yield {"type": "response.output_item.done", "output_index": place["output_index"], "item": done}


def _call_events(call: Call, output: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    index = len(output)
    kind, field, events, mark = (
        ("custom_tool_call", "input", "response.custom_tool_call_input", "ctc")
        if call.custom
        else ("function_call", "arguments", "response.function_call_arguments", "fc")
    )
    item = {
        "type": kind,
        "id": f"{mark}_{_fresh()}",
        "status": "in_progress",
        "call_id": f"call_{_fresh()}",
        "name": call.tool,
        field: "",
    }
    place = {"output_index": index, "item_id": item["id"]}
    yield {"type": "response.output_item.added", "output_index": index, "item": item}
    yield {"type": f"{events}.delta", **place, "delta": call.payload}
    yield {"type": f"{events}.done", **place, field: call.payload}
    done = {**item, "status": "completed", field: call.payload}
    output.append(done)
    yield {"type": "response.output_item.done", "output_index": index, "item": done}


def _usage(request_bytes: int, cached_bytes: int, answer_bytes: int) -> dict[str, Any]:
    given, cached, taken = (-(-size // _BYTES_PER_TOKEN) for size in (request_bytes, cached_bytes, answer_bytes))
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": min(cached, given)},
        "output_tokens": taken,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + taken,
    }


def _fresh() -> str:
    """An id nobody else has: a conversation may hold the same prompt, and so the same calls, many times."""
    return os.urandom(12).hex()

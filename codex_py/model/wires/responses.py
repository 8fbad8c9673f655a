"""The Responses API: `POST /responses`, and `/responses/compact` where a provider has it.

Keys have a fixed order, and the items of the history come as bytes that are ready to send.
"""

from __future__ import annotations

import json
import re
import time
from hashlib import sha256
from typing import Any, Final

from codex_py.errors import ModelError
from codex_py.model.client import (
    ArgumentsDelta,
    Completed,
    Created,
    ItemDone,
    Prompt,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.model.failures import IncompleteAnswer, incomplete_answer, stream_failure
from codex_py.model.pictures import without_pictures
from codex_py.model.providers import Provider
from codex_py.model.wires.strict_schema import sent_schema
from codex_py.model.wordings import refuses_thinking
from codex_py.protocol.encoding import as_object, decode_or_none, encode_json, uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.origin import Origin, sendable
from codex_py.protocol.usage import TokenUsage

_SUBAGENT: Final = "collab_spawn"
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
_EXCHANGE: Final = (b'{"type":"function_call', b'{"type":"custom_tool_call')
# Within a JSON text the quotes would be escaped, so these keys stand for themselves.
_LONG_ID: Final = rb'"call_id":"[^"]{65}'
_ODD_NAME: Final = rb'"name":"[a-zA-Z0-9_-]*[^a-zA-Z0-9_"-]'
_MAX_ID: Final = 64
_ID_LENGTH: Final = 40


class _SentHistory:
    """The history of the last request of a thread, and the items of it that were sent."""

    def __init__(self) -> None:
        self.history: list[bytes] = []
        self.sendable: list[bytes] = []
        self.origin: Origin | None = None
        self.pictures = True


class ResponsesWire:
    """The `Wire` of the Responses API."""

    api = "Responses API"

    def __init__(self, provider: Provider, installation_id: str = "") -> None:
        self._provider = provider.id
        self._in_band = provider.compaction == "in-band"
        self._installation_id = installation_id
        # Agents share the client, and take turns with the session that started them.
        self._threads: dict[str, _SentHistory] = {}
        self._keeps_reasoning = True

    def path(self, prompt: Prompt) -> str:
        return "responses/compact" if prompt.kind == "compaction_endpoint" else "responses"

    def headers(self, prompt: Prompt) -> dict[str, str]:
        headers = {
            "session-id": prompt.session_id,
            "thread-id": prompt.thread_id,
            "x-client-request-id": prompt.thread_id,
            "x-codex-window-id": prompt.window_id,
            "x-codex-turn-metadata": _turn_metadata(prompt, self._installation_id),
        }
        if prompt.parent is not None:
            headers |= {"x-codex-parent-thread-id": prompt.parent.thread_id, "x-openai-subagent": _SUBAGENT}
        if prompt.kind == "compaction_endpoint":
            headers["accept"] = "application/json"
        if self._in_band:
            headers["x-codex-beta-features"] = "remote_compaction_v2"
        return headers

    def auth_headers(self, token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}

    def encode(self, prompt: Prompt) -> bytes:
        head, tail = _head(prompt), b"]" + _tail(prompt, self._installation_id)
        items = self._items(prompt)
        if not items:
            return head + tail
        # A long history is copied once, into the body.
        items[0] = head + items[0]
        items[-1] += tail
        return b",".join(items)

    def _items(self, prompt: Prompt) -> list[bytes]:
        """The history in the form this model may be sent. Items of an earlier request are not examined again."""
        origin, history = Origin(self._provider, prompt.model, "responses"), list(prompt.input)
        sent = self._threads.setdefault(prompt.thread_id, _SentHistory())
        known = len(sent.history)
        if origin != sent.origin or prompt.pictures != sent.pictures or history[:known] != sent.history:
            known = 0
            sent.sendable.clear()
        added = [item for item in history[known:] if self._keeps_reasoning or not _is_reasoning(item)]
        new = [_fitting(item) for encoded in added if (item := sendable(encoded, origin)) is not None]
        sent.sendable.extend(new if prompt.pictures else map(without_pictures, new))
        sent.origin, sent.history, sent.pictures = origin, history, prompt.pictures
        return sent.sendable.copy()

    def decoder(self, prompt: Prompt) -> ResponsesDecoder:
        return ResponsesDecoder()

    def adapt(self, status: int, failure: ModelError) -> bool:
        """As `Wire` says: sealed reasoning that a server does not take back is not sent again."""
        has_reasoning = any(_is_reasoning(item) for sent in self._threads.values() for item in sent.sendable)
        if status not in (400, 404, 422) or not has_reasoning or not refuses_thinking(str(failure)):
            return False
        self._keeps_reasoning = False
        self._threads.clear()
        return True


class ResponsesDecoder:
    """The `Decoder` of the Responses API: each of its events speaks for itself."""

    def __init__(self) -> None:
        # An answer that came whole, whose end is still to be read.
        self._whole: dict[str, Any] | None = None

    def decode(self, data: str) -> list[ResponseEvent]:
        event = _event(as_object(decode_or_none(data)))
        return [] if event is None else [event]

    def decode_body(self, body: bytes) -> list[ResponseEvent] | None:
        """As `Decoder` says: what a server that does not stream has put into one object."""
        response = as_object(decode_or_none(body.decode("utf-8", "replace")))
        if response.get("object") != "response" or not isinstance(response.get("output"), list):
            return None
        self._whole = response
        items = [item for item in map(as_object, response["output"]) if isinstance(item.get("type"), str)]
        done = [event for item in items if (event := _item_done(item)) is not None]
        return [Created(), *done]

    def finish(self) -> list[ResponseEvent]:
        whole, self._whole = self._whole, None
        return [] if whole is None else [_completed(whole)]


def _is_reasoning(encoded: bytes) -> bool:
    return encoded.startswith(b'{"type":"reasoning"')


def _fitting(encoded: bytes) -> bytes:
    """An item with the id and the name of its call as the API takes them: other servers make longer and freer ones."""
    if not encoded.startswith(_EXCHANGE) or not (re.search(_LONG_ID, encoded) or re.search(_ODD_NAME, encoded)):
        return encoded
    item = ResponseItem(encoded).decode()
    call_id, name = item.get("call_id"), item.get("name")
    if isinstance(call_id, str) and len(call_id) > _MAX_ID:
        item["call_id"] = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_ID_LENGTH]
    if isinstance(name, str):
        item["name"] = re.sub("[^a-zA-Z0-9_-]", "_", name)
    return encode_json(item)


def _turn_metadata(prompt: Prompt, installation_id: str) -> str:
    """The turn's metadata for the server, as JSON; nothing about this machine's files or its user."""
    above = prompt.parent
    spawned = {"subagent_kind": "thread_spawn", "thread_source": "subagent"}
    fields = {
        **({"installation_id": installation_id} if installation_id else {}),
        "session_id": prompt.session_id,
        "thread_id": prompt.thread_id,
        "agent_name": "/root",
        "turn_id": prompt.turn_id,
        "window_id": prompt.window_id,
        "window_number": prompt.window,
        "request_kind": "turn" if prompt.kind == "turn" else "compaction",
        **({"parent_thread_id": above.thread_id, "parent_turn_id": above.turn_id} if above else {}),
        "root_turn_id": prompt.root_turn_id,
        **(spawned if above else {"thread_source": "user"}),
        "model": prompt.model,
        **({"reasoning_effort": prompt.effort} if prompt.effort else {}),
    }
    # A header takes ASCII only, and a model may be called anything.
    return json.dumps(fields, separators=(",", ":"))


def _head(prompt: Prompt) -> bytes:
    fields: dict[str, Any] = {"model": prompt.model, "instructions": prompt.instructions}
    if prompt.kind != "compaction_endpoint":
        fields["stream"] = True
    if prompt.service_tier:
        fields["service_tier"] = prompt.service_tier
    return encode_json(fields)[:-1] + b',"input":['


def _tail(prompt: Prompt, installation_id: str) -> bytes:
    to_model = prompt.kind != "compaction_endpoint"
    before: dict[str, Any] = {"tool_choice": "auto"} if to_model else {}
    before["parallel_tool_calls"] = prompt.parallel_tool_calls
    if reasoning := _reasoning(prompt):
        before["reasoning"] = reasoning
    if to_model:
        if prompt.max_output_tokens is not None:
            before["max_output_tokens"] = prompt.max_output_tokens
        before["store"] = False
        before["include"] = ["reasoning.encrypted_content"]
    before["prompt_cache_key"] = prompt.thread_id
    if not to_model:
        return b"".join((b',"tools":', prompt.tools, b",", encode_json(before)[1:-1], _text(prompt), b"}"))
    above = prompt.parent
    # Sorted, so that two bodies differ only where their contents do.
    metadata = {
        **({"parent_turn_id": above.turn_id} if above else {}),
        "root_turn_id": prompt.root_turn_id,
        "session_id": prompt.session_id,
        "thread_id": prompt.thread_id,
        "turn_id": prompt.turn_id,
        **({"x-codex-installation-id": installation_id} if installation_id else {}),
        **({"x-codex-parent-thread-id": above.thread_id} if above else {}),
        "x-codex-turn-metadata": _turn_metadata(prompt, installation_id),
        "x-codex-window-id": prompt.window_id,
        **({"x-openai-subagent": _SUBAGENT} if above else {}),
    }
    return b"".join(
        (
            b',"tools":',
            prompt.tools,
            b",",
            encode_json(before)[1:-1],
            _text(prompt),
            b',"client_metadata":',
            encode_json(metadata),
            b"}",
        )
    )


def _reasoning(prompt: Prompt) -> dict[str, str]:
    # A summary of `none` is this program's word for not asking; the API has no such value.
    wanted = {"effort": prompt.effort, "summary": None if prompt.summary == "none" else prompt.summary}
    return {key: value for key, value in wanted.items() if value}


def _text(prompt: Prompt) -> bytes:
    fragments: list[bytes] = []
    if prompt.verbosity:
        fragments.append(b'"verbosity":' + encode_json(prompt.verbosity))
    if prompt.output_schema is not None:
        schema = sent_schema(prompt.output_schema)
        form = b'{"type":"json_schema","strict":%b,"schema":%b,"name":"codex_output_schema"}'
        fragments.append(b'"format":' + form % (b"true" if schema.strict else b"false", schema.encoded))
    return b',"text":{' + b",".join(fragments) + b"}" if fragments else b""


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
            return Created()
        case {"type": "response.completed"}:
            return _completed(as_object(value.get("response")))
        case {"type": "response.failed"}:
            raise stream_failure(as_object(as_object(value.get("response")).get("error")), now=time.time())
        case {"type": "response.incomplete"}:
            raise _incomplete(as_object(value.get("response")))
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
    # Some servers have one event for every end.
    match response.get("status"):
        case "incomplete":
            raise _incomplete(response)
        case "failed":
            raise stream_failure(as_object(response.get("error")), now=time.time())
        case _:
            end_turn = response.get("end_turn")
            end_turn = end_turn if isinstance(end_turn, bool) else None
            return Completed(_usage(response), end_turn)


def _incomplete(response: dict[str, Any]) -> IncompleteAnswer:
    reason = as_object(response.get("incomplete_details")).get("reason")
    return incomplete_answer(str(reason or ""), guides=True).with_usage(_usage(response))


def _usage(response: dict[str, Any]) -> TokenUsage | None:
    usage = as_object(response.get("usage"))
    return TokenUsage.from_wire(usage) if usage else None


def _top_level_error(event: dict[str, Any]) -> dict[str, Any]:
    """The error of an `error` event, which some servers nest and some lay flat."""
    error = event.get("error")
    if nested := as_object(error):
        return nested
    # `type` here is the event's own.
    flat = {key: value for key, value in event.items() if key != "type"}
    return {**flat, "message": error} if isinstance(error, str) else flat

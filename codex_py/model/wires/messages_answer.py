"""Reading an answer of the Messages API: content blocks become Responses items, `stop_reason` decides how it ends.

A block is an item when it is whole. A call whose arguments are not, as at the limit on an answer, is held back until
the reason for the stop is known: it is never run with half of its arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from codex_py.errors import ModelError
from codex_py.model.client import (
    AnswerNote,
    ArgumentsDelta,
    Completed,
    Created,
    ItemDone,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.model.error_bodies import on_one_line
from codex_py.model.failures import REFUSED, IncompleteAnswer, cut_answer, refused_answer, stream_failure
from codex_py.model.sent_errors import sent_error
from codex_py.model.wires.messages_log import GO_ON
from codex_py.model.wires.tools import ToolTable, read_index
from codex_py.protocol.encoding import as_list, as_object, decode_or_none, encode_json, uuid7
from codex_py.protocol.items import ResponseItem, message_of_content
from codex_py.protocol.usage import TokenUsage

_KNOWN_ENDS: Final = frozenset({"", "end_turn", "tool_use", "stop_sequence", "pause_turn"})
# Asking again would bring the same.
_FINAL_ERRORS: Final = frozenset(
    {
        "authentication_error",
        "billing_error",
        "invalid_request_error",
        "not_found_error",
        "permission_error",
    }
)
_UNSTARTED: Final[Mapping[str, str]] = {"text_delta": "text", "thinking_delta": "thinking"}
_COUNTS: Final = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class _Block:
    """A content block on its way. `pieces` are of its text, its thinking or its arguments."""

    __slots__ = ("pieces", "signature", "start", "type")

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.start = start
        self.type = _text_of(start, "type")
        self.pieces: list[str] = []
        self.signature: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def arguments(self) -> str:
        """The arguments of a call as they came; empty where none did."""
        whole = as_object(self.start.get("input"))
        if self.pieces or not whole:
            return self.text
        try:
            # Some servers send them in one piece with the start.
            return encode_json(whole).decode()
        except ValueError:
            # A number that no JSON of ours could send back.
            return ""

    def begin(self) -> list[ResponseEvent]:
        """The events of the block's start, which may already carry text or thinking."""
        match self.type:
            case "text":
                return self.grow({"type": "text_delta", "text": self.start.get("text")})
            case "thinking":
                begun = self.grow({"type": "thinking_delta", "thinking": self.start.get("thinking")})
                return [*begun, *self.grow({"type": "signature_delta", "signature": self.start.get("signature")})]
            case "tool_use":
                return [ToolCallStarted(_text_of(self.start, "name"))]
            case _:
                return []

    def grow(self, delta: Mapping[str, Any]) -> list[ResponseEvent]:
        """Take a delta; one of another type of block is left out."""
        match self.type, delta:
            case "text", {"type": "text_delta", "text": str(piece)} if piece:
                self.pieces.append(piece)
                return [StreamTextDelta(piece)]
            case "thinking", {"type": "thinking_delta", "thinking": str(piece)} if piece:
                self.pieces.append(piece)
                return [StreamReasoningDelta(piece)]
            case "thinking", {"type": "signature_delta", "signature": str(piece)} if piece:
                self.signature.append(piece)
                return []
            case "tool_use", {"type": "input_json_delta", "partial_json": str(piece)} if piece:
                self.pieces.append(piece)
                return [ArgumentsDelta(piece)]
            case _:
                return []


class MessagesDecoder:
    """The `Decoder` of the Messages API. `is_known` says whether a call of the history has an id."""

    def __init__(self, tools: ToolTable, is_known: Callable[[str], bool]) -> None:
        self._tools = tools
        self._is_known = is_known
        self._blocks: dict[int, _Block] = {}
        # A call whose arguments are no JSON object yet, though its block has ended.
        self._held: _Block | None = None
        self._calls: dict[str, tuple[str, str]] = {}
        self._counts: dict[str, int] = {}
        self._newest = -1
        self._started = 0
        self._stop = ""
        self._details: dict[str, Any] = {}
        self._is_over = False

    def decode(self, data: str) -> list[ResponseEvent]:
        """As `Decoder` says."""
        return [] if self._is_over else self._read(as_object(decode_or_none(data)))

    def decode_body(self, body: bytes) -> list[ResponseEvent] | None:
        """As `Decoder` says: the blocks of a whole message, one after the other, and why it stopped."""
        message = as_object(decode_or_none(body.decode("utf-8", "replace")))
        if message.get("type") == "error":
            raise _error_of(message)
        if message.get("type") != "message" or not isinstance(message.get("content"), list):
            return None
        events = self._read({"type": "message_start", "message": message})
        for index, block in enumerate(as_list(message["content"])):
            events += self._start(index, as_object(block))
            events += self._finish_block(index)
        return [*events, *self._note_stop({"stop_reason": "end_turn", **message})]

    def finish(self) -> list[ResponseEvent]:
        """As `Decoder` says: an answer that has said why it stopped is whole."""
        return [] if self._is_over or not self._stop else self._end()

    def _read(self, event: dict[str, Any]) -> list[ResponseEvent]:
        match event:
            case {"type": "message_start"}:
                message = as_object(event.get("message"))
                self._note_usage(message.get("usage"))
                return [Created()]
            case {"type": "content_block_start"}:
                return self._start(self._index_of(event, new=True), as_object(event.get("content_block")))
            case {"type": "content_block_delta"}:
                return self._grow(self._index_of(event), as_object(event.get("delta")))
            case {"type": "content_block_stop"}:
                return self._finish_block(self._index_of(event))
            case {"type": "message_delta"}:
                self._note_usage(event.get("usage"))
                return self._note_stop(as_object(event.get("delta")))
            case {"type": "message_stop"}:
                return self._end()
            case _:
                if "error" in event or event.get("type") == "error":
                    raise _error_of(event)
                return []

    def _index_of(self, event: Mapping[str, Any], *, new: bool = False) -> int:
        """The index of a block. Without one a start begins another block, and all else belongs to the newest."""
        if (index := read_index(event.get("index"))) is not None:
            self._newest = max(self._newest, index)
            return index
        self._newest += new
        return self._newest

    def _grow(self, index: int, delta: dict[str, Any]) -> list[ResponseEvent]:
        if index in self._blocks:
            return self._blocks[index].grow(delta)
        # Some servers leave out the start of a text, which is then the next block. One of a call cannot be left out: it
        # has the name.
        if index != self._started or (block_type := _UNSTARTED.get(_text_of(delta, "type"))) is None:
            return []
        return [*self._start(index, {"type": block_type}), *self._blocks[index].grow(delta)]

    def _start(self, index: int, start: dict[str, Any]) -> list[ResponseEvent]:
        # The model goes on, so the call before is as it wanted it.
        before = [*self._finish_block(index), *self._release()]
        block = self._blocks[index] = _Block(start)
        self._started += 1
        return [*before, *block.begin()]

    def _finish_block(self, index: int) -> list[ResponseEvent]:
        block = self._blocks.pop(index, None)
        match block.type if block else "":
            case "text" if block and block.text:
                return [_done(_message(block.text))]
            case "thinking" if block and (block.text or block.signature):
                return [_done(_reasoning(block.text, "".join(block.signature)))]
            case "redacted_thinking" if block:
                return [_done(_redacted(_text_of(block.start, "data")))]
            case "tool_use" if block:
                # Two such blocks at once, and the first was not the last one.
                before = self._release()
                self._held = block
                return [*before, *(self._release() if isinstance(decode_or_none(block.arguments), dict) else ())]
            case _:
                # What the server's own tools do, which nobody here has offered, and what is not known yet.
                return []

    def _release(self) -> list[ResponseEvent]:
        """The call that was held back, once."""
        block, self._held = self._held, None
        if block is None:
            return []
        call_id, name, arguments = _text_of(block.start, "id"), _text_of(block.start, "name"), block.arguments or "{}"
        if self._calls.get(call_id) == (name, arguments):
            # The same event once more.
            return []
        if not call_id or call_id in self._calls or self._is_known(call_id):
            # It could not be answered, and what the model wanted would be lost.
            call_id = f"call_{uuid7()}"
        self._calls[call_id] = (name, arguments)
        item = {"type": "function_call", "call_id": call_id, **self._tools.name_fields(name), "arguments": arguments}
        return [_done(item)]

    def _note_stop(self, delta: dict[str, Any]) -> list[ResponseEvent]:
        reason = _text_of(delta, "stop_reason")
        if not reason:
            return []
        self._stop, self._details = reason, as_object(delta.get("stop_details"))
        return self._rest()

    def _rest(self) -> list[ResponseEvent]:
        """The blocks that a server has begun and not ended, and the call that was held back if nothing cut it off."""
        rest = [event for index in sorted(self._blocks) for event in self._finish_block(index)]
        if self._stop == REFUSED or self._cut() is not None:
            self._held = None
        return [*rest, *self._release()]

    def _end(self) -> list[ResponseEvent]:
        rest = self._rest()
        self._is_over = True
        if (cut := self._cut()) is not None:
            raise cut.with_usage(self._usage())
        match self._stop:
            case "refusal":
                raise _refusal(self._details).with_usage(self._usage())
            case _:
                if self._stop not in _KNOWN_ENDS:
                    note = f"the server ended the answer for a reason of its own: `{on_one_line(self._stop, 60)}`"
                    rest.append(AnswerNote(note))
                is_paused = self._stop == "pause_turn"
                if is_paused and self._started and not self._calls:
                    # Stored, so that a resumed session sends the same messages.
                    rest.append(ItemDone(message_of_content("developer", [{"type": "input_text", "text": GO_ON}])))
                return [*rest, Completed(self._usage(), False if is_paused else None)]

    def _cut(self) -> IncompleteAnswer | None:
        return None if self._stop in _KNOWN_ENDS else cut_answer(self._stop)

    def _note_usage(self, usage: object) -> None:
        """Counts come with the first event and, added up, with the last ones; some servers know them only then."""
        for name in _COUNTS:
            value = as_object(usage).get(name)
            if isinstance(value, int) and value > 0:
                self._counts[name] = value
        details = as_object(as_object(usage).get("output_tokens_details"))
        if isinstance(value := details.get("thinking_tokens"), int) and value > 0:
            self._counts["thinking_tokens"] = value

    def _usage(self) -> TokenUsage | None:
        if not self._counts:
            return None
        fresh, read, written, output = (self._counts.get(name, 0) for name in _COUNTS)
        sent = fresh + read + written
        return TokenUsage(sent, read, output, self._counts.get("thinking_tokens", 0), sent + output, written)


def _text_of(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _done(item: dict[str, Any]) -> ItemDone:
    return ItemDone(ResponseItem.from_wire(item))


def _message(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _reasoning(text: str, signature: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "summary": summary, "encrypted_content": signature}


def _redacted(data: str) -> dict[str, Any]:
    return {"type": "reasoning", "summary": [], "encrypted_content": data, "redacted": True}


def _error_of(event: Mapping[str, Any]) -> ModelError:
    failure = sent_error({**event, "type": "error"}, now=time.time()) or stream_failure({}, now=time.time())
    if request_id := on_one_line(_text_of(event, "request_id"), 100):
        failure.args = (f"{failure} (request id: {request_id})",)
    if _text_of(as_object(event.get("error")), "type") in _FINAL_ERRORS:
        failure.retryable = False
    return failure


def _refusal(details: Mapping[str, Any]) -> IncompleteAnswer:
    words = [_text_of(details, key) for key in ("category", "explanation")]
    return refused_answer(": ".join(word for word in words if word))

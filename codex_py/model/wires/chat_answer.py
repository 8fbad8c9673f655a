"""The chunks of a Chat Completions answer as events. Its items are made when it is whole, so that no cut one counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from codex_py.errors import ModelError
from codex_py.model.chat_quirks import ChatQuirks
from codex_py.model.client import (
    AnswerNote,
    ArgumentsDelta,
    Completed,
    ItemDone,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.model.error_bodies import on_one_line
from codex_py.model.failures import FILTERED, IncompleteAnswer, cut_answer, incomplete_answer, refused_answer
from codex_py.model.sent_errors import sent_error
from codex_py.model.wires.chat_calls import CallAssembler
from codex_py.model.wires.think_tags import THINK, ThinkSplitter, in_tags, split_unopened
from codex_py.model.wires.tools import ToolTable
from codex_py.protocol.encoding import as_list, as_object, decode_json, decode_or_none
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import TokenUsage

_DONE: Final = "[DONE]"
_WHOLE: Final = frozenset(
    {"stop", "tool_calls", "function_call", "end_turn", "tool_use", "eos", "eos_token", "stop_sequence"}
)
_FILTERS: Final = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive", "guardrail"}
)
_REFUSED: Final = frozenset({"refusal", "refused"})
_BROKEN: Final = frozenset(
    {
        *("error", "insufficient_system_resource", "network_error", "timeout"),
        *("abort", "aborted", "cancelled", "canceled"),
        *("malformed_function_call", "malformed_response", "unexpected_tool_call"),
    }
)
_REASONING_FIELDS: Final = ("reasoning_content", "reasoning", "thinking")
# The token counts, which servers give under several names.
_CACHED: Final = ("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens")
_WRITTEN: Final = ("cache_write_tokens", "cache_creation_input_tokens")


class ReplayedReasoning(NamedTuple):
    """What a message gives a model back of its reasoning: fields, the start of its text, and further fields of calls by
    the ids that these came with.
    """

    fields: dict[str, Any]
    opening: str
    extras: dict[str, Any]


def replayed(items: Sequence[dict[str, Any]], quirks: ChatQuirks, *, has_calls: bool) -> ReplayedReasoning:
    """The reasoning of one message, in the form that the server takes."""
    fields: dict[str, Any] = {}
    opening = ""
    if quirks.reasoning:
        text = "".join(map(_reasoning_in, items))
        # Also for the calls of another model, whose reasoning nobody else may see: the field must be there.
        if text or has_calls:
            fields[quirks.reasoning] = text
    elif quirks.echoes and has_calls:
        # What the model has thought on the way to its calls, as the server has sent it; a finished answer needs none.
        for item in items:
            name = str(item.get("field") or "")
            if name in _REASONING_FIELDS:
                fields[name] = str(fields.get(name, "")) + _reasoning_in(item)
            else:
                opening += in_tags(name, _reasoning_in(item))
    details = [detail for item in items for detail in as_list(item.get("details"))] if quirks.details else []
    if details:
        fields["reasoning_details"] = details
    extras: dict[str, Any] = {}
    for item in items if quirks.extras and quirks.signed else ():
        extras |= as_object(item.get("calls"))
    return ReplayedReasoning(fields, opening, extras)


def _reasoning_in(item: dict[str, Any]) -> str:
    return "".join(str(as_object(part).get("text", "")) for part in as_list(item.get("content")))


class ChatDecoder:
    """The `Decoder` of the Chat Completions API. `is_known` says whether a call of the history has an id."""

    def __init__(self, tools: ToolTable, is_known: Callable[[str], bool]) -> None:
        self._tools = tools
        self._is_known = is_known
        self._calls = CallAssembler()
        self._splitter = ThinkSplitter()
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._reasoning: list[str] = []
        self._reasoning_field = ""
        # With the pieces of their texts, which are joined once.
        self._details: list[tuple[dict[str, Any], list[str]]] = []
        self._finish = ""
        self._usage: TokenUsage | None = None
        self._failure: IncompleteAnswer | None = None
        self._has_choice = self._completed = False

    def decode(self, data: str) -> list[ResponseEvent]:
        if self._completed:
            return []
        if not data.startswith("{"):
            data = data.lstrip()
            if data.startswith(_DONE):
                return self._end()
            if not data.startswith(("{", "[")):
                return []
        try:
            value = decode_json(data)
        except ValueError as error:
            if self._failure is not None:
                raise self._failure from error
            # Part of the answer is in it, and nothing else brings that.
            raise ModelError("a chunk of the answer is not JSON", retryable=True, streaming=True) from error
        # An error comes in an array of one from some.
        fields = as_object(value) or as_object(next(iter(as_list(value)), None))
        return self._take(fields)

    def decode_body(self, body: bytes) -> list[ResponseEvent] | None:
        value = as_object(decode_or_none(body.decode("utf-8", "replace")))
        if not as_list(value.get("choices")):
            return None
        events = self._take(value)
        self._finish = self._finish or "stop"
        return events

    def finish(self) -> list[ResponseEvent]:
        # Without an end of either sort it was cut off.
        return self._end() if self._finish and not self._completed else []

    def _take(self, value: dict[str, Any]) -> list[ResponseEvent]:
        if ("error" in value or "choices" not in value) and (failure := sent_error(value, now=time.time())):
            raise self._failure or failure
        events: list[ResponseEvent] = []
        usage = value.get("usage") or as_object(value.get("x_groq")).get("usage")
        if usage := as_object(usage):
            self._usage = _read_usage(usage)
        choices = as_list(value.get("choices"))
        for choice in choices:
            if self._failure is None and (fields := as_object(choice)):
                events += self._choice(fields)
        if not choices and usage and self._finish:
            # The last chunk, whether `[DONE]` follows or not.
            events += self._end()
        return events

    def _choice(self, choice: dict[str, Any]) -> list[ResponseEvent]:
        if choice.get("index", 0) not in (0, None):
            return []
        if "error" in choice and (failure := sent_error(choice, now=time.time())):
            raise failure
        # A message at the end of a stream says once more what the chunks have said.
        delta = as_object(choice.get("delta")) or ({} if self._has_choice else as_object(choice.get("message")))
        self._has_choice = True
        content = delta.get("content")
        # Most chunks bring a few letters of text and nothing else.
        events = [] if len(delta) == 1 and content else self._rare(delta)
        if content:
            events += self._content_of(content)
        finish = choice.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish
            events += self._note_finish(finish.lower())
        return events

    def _rare(self, delta: dict[str, Any]) -> list[ResponseEvent]:
        events = self._reasoning_of(delta)
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            self._refusal.append(refusal)
            events.append(StreamTextDelta(refusal))
        fragments = as_list(delta.get("tool_calls"))
        if as_object(old := delta.get("function_call")):
            # The field before there were parallel calls: one function, no id.
            fragments = [*fragments, {"index": 0, "function": old}]
        self._calls.begin_chunk()
        for fragment in fragments:
            events += self._call(as_object(fragment))
        return events

    def _reasoning_of(self, delta: dict[str, Any]) -> list[ResponseEvent]:
        for detail in as_list(delta.get("reasoning_details")):
            _merge(self._details, as_object(detail))
        for name in _REASONING_FIELDS:
            if isinstance(text := delta.get(name), str) and text:
                self._reasoning_field = name
                return self._reasoned(text)
        return []

    def _reasoned(self, text: str) -> list[ResponseEvent]:
        if text:
            self._reasoning.append(text)
        return [StreamReasoningDelta(text)] if text else []

    def _content_of(self, content: object) -> list[ResponseEvent]:
        if isinstance(content, str):
            return self._written(self._splitter.feed(content))
        events: list[ResponseEvent] = []
        for part in map(as_object, as_list(content)):
            if isinstance(text := part.get("text"), str):
                events += self._written(self._splitter.feed(text))
            for inner in map(as_object, as_list(part.get("thinking"))):
                events += self._reasoned(str(inner.get("text") or ""))
        return events

    def _written(self, pieces: Sequence[tuple[bool, str]]) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        for is_reasoning, text in pieces:
            if is_reasoning:
                events += self._reasoned(text)
            else:
                self._text.append(text)
                events.append(StreamTextDelta(text))
        return events

    def _call(self, fragment: dict[str, Any]) -> list[ResponseEvent]:
        call, is_new, text = self._calls.feed(fragment)
        events: list[ResponseEvent] = [ToolCallStarted(call.name)] if is_new else []
        return [*events, ArgumentsDelta(text)] if text else events

    def _note_finish(self, finish: str) -> list[ResponseEvent]:
        if finish in _WHOLE:
            return []
        if (cut := cut_answer(finish)) is not None:
            # What was written until then is kept, and a call that may be cut is not made.
            self._failure = cut
            return [*self._written(self._splitter.finish()), *self._spoken_items()]
        if finish in _FILTERS:
            self._failure = incomplete_answer(FILTERED)
        if finish in _REFUSED:
            self._failure = refused_answer("".join(self._refusal))
            return self._spoken_items()
        if finish in _BROKEN:
            raise ModelError(
                f"the server ended the answer early, its reason: `{finish}`",
                retryable=True,
                streaming=True,
                code=finish,
            )
        return []

    def _end(self) -> list[ResponseEvent]:
        if not self._has_choice:
            raise ModelError("the server ended the answer before it began", retryable=True, streaming=True)
        if self._failure is not None:
            raise self._failure.with_usage(self._usage)
        self._completed = True
        events = self._written(self._splitter.finish())
        if self._finish and self._finish.lower() not in _WHOLE:
            events.append(AnswerNote(f"the server ended the answer for a reason of its own: `{_short(self._finish)}`"))
        calls = self._calls.finished(self._is_known)
        events += self._spoken_items({call.id: call.extra for call in calls if call.extra})
        for call in calls:
            fields = {"type": "function_call", **self._tools.name_fields(call.name)}
            events.append(_done({**fields, "arguments": call.arguments or "{}", "call_id": call.id}))
        if not calls and not self._refusal and not "".join(self._text).strip():
            events.append(AnswerNote("the model has ended its answer without a message"))
        return [*events, Completed(self._usage, None)]

    def _spoken_items(self, extras: dict[str, Any] | None = None) -> list[ResponseEvent]:
        """The items of the reasoning and the text so far."""
        events: list[ResponseEvent] = []
        text, reasoning, field = "".join(self._text), "".join(self._reasoning), self._reasoning_field
        if not reasoning:
            reasoning, text = split_unopened(text)
            field = THINK
        if reasoning or self._details or extras:
            item: dict[str, Any] = {"type": "reasoning", "summary": []}
            if reasoning:
                item["content"] = [{"type": "reasoning_text", "text": reasoning}]
                if field := field or self._splitter.tag:
                    item["field"] = field
            if self._details:
                item["details"] = [
                    {**detail, "text": "".join(pieces)} if pieces else detail for detail, pieces in self._details
                ]
            if extras:
                item["calls"] = extras
            events.append(_done(item))
        refusal = "".join(self._refusal)
        content = [{"type": "output_text", "text": text}] if text.strip() else []
        if refusal:
            content.append({"type": "refusal", "refusal": refusal})
        if content:
            events.append(_done({"type": "message", "role": "assistant", "content": content}))
        return events


def _merge(details: list[tuple[dict[str, Any], list[str]]], detail: dict[str, Any]) -> None:
    """Add a piece of `reasoning_details`; the pieces of one text come as one."""
    text = detail.get("text")
    if detail.get("type") == "reasoning.text" and isinstance(text, str) and details:
        last, pieces = details[-1]
        if pieces and last.get("index") == detail.get("index"):
            last.update({key: value for key, value in detail.items() if value is not None})
            pieces.append(text)
            return
    if detail:
        is_text = detail.get("type") == "reasoning.text" and isinstance(text, str)
        details.append((dict(detail), [str(text)] if is_text else []))


def _done(value: dict[str, Any]) -> ItemDone:
    try:
        return ItemDone(ResponseItem.from_wire(value))
    except ValueError as error:
        # A number that no JSON of ours could send back.
        raise ModelError("the answer holds a number that is too large", retryable=True, streaming=True) from error


def _short(text: str) -> str:
    return on_one_line(text, 60)


def _read_usage(usage: dict[str, Any]) -> TokenUsage:
    """The counts of a `usage` object; missing or odd ones are 0. Cached tokens are part of the input."""
    prompt, answer = _count(usage, "prompt_tokens", "input_tokens"), _count(usage, "completion_tokens", "output_tokens")
    details = as_object(usage.get("prompt_tokens_details"))
    cached = _count(details, *_CACHED) or _count(usage, *_CACHED)
    written = _count(details, *_WRITTEN) or _count(usage, *_WRITTEN)
    reasoning = _count(as_object(usage.get("completion_tokens_details")), "reasoning_tokens") or _count(
        usage, "reasoning_tokens"
    )
    if cached > prompt:
        # From a server that counts only what is new.
        prompt += cached
    total = _count(usage, "total_tokens")
    if reasoning and total == prompt + answer + reasoning:
        # From a server that counts the answer without its reasoning.
        answer += reasoning
    return TokenUsage(prompt, cached, answer, reasoning, max(total, prompt + answer), written)


def _count(fields: dict[str, Any], *names: str) -> int:
    for name in names:
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return 0

"""The Messages API of Anthropic: `POST /messages`. Requests are built here, answers are read in `messages_answer`.

Fields that change from request to request come after `messages`. Up to three blocks carry `cache_control`: the last
one of `system`, which covers the tools too, the last one of the previous request, and the last one of this request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from codex_py.errors import ModelError
from codex_py.model.client import Prompt
from codex_py.model.providers import Provider
from codex_py.model.wires.history import HistoryReader, IdForm
from codex_py.model.wires.messages_answer import MessagesDecoder
from codex_py.model.wires.messages_log import CACHE_MARK, MessageLog, encoded
from codex_py.model.wires.messages_thinking import Thinking, supported_schema, thinking_for
from codex_py.model.wires.tools import FunctionTool, ToolTable
from codex_py.model.wordings import refuses_thinking, stated_answer_limit
from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.protocol.origin import Origin

_VERSION: Final = "2023-06-01"
_INTERLEAVED: Final = "interleaved-thinking-2025-05-14"
_ID_FORM: Final = IdForm("[a-zA-Z0-9_-]{1,64}", 40)
# The API takes no request without a limit. So much nearly every model can say.
_MAX_TOKENS: Final = 8192
_MAX_THREADS: Final = 8
_NOT_AT_TOP: Final = ("anyOf", "oneOf", "allOf")
_SCHEMA_WORDS: Final = (
    "Your last message of this turn, the one without tool calls, must be one JSON value and nothing else: no code"
    " fence, no words around it. It must fit this JSON schema:\n"
)
# What servers say of a part of a request that they do not take, the narrower words first. `replay`, for thinking of
# earlier answers, has its words in `wordings`.
_REFUSALS: Final = (
    ("budget", ("thinking.type.adaptive",)),
    ("display", ("display",)),
    ("adaptive", ("adaptive",)),
    ("thinking", ("expected `thinking`", "passed back")),
    ("replay", ()),
    ("thinking", ("support thinking", "thinking is not supported", "thinking: extra")),
    ("format", ("output_config.format", "output_format", "output_config:", "json_schema")),
    ("effort", ("output_config", "effort")),
    ("cache", ("cache_control",)),
)


class _Thread:
    """The state of one conversation. Agents share a client, and each has a state of its own."""

    def __init__(self, *, keeps_thinking: bool) -> None:
        self._keeps_thinking = keeps_thinking
        self._reader = HistoryReader(_ID_FORM)
        self.log = MessageLog(keeps_thinking=keeps_thinking)
        self.tools = ToolTable()
        self.encoded_tools = b""

    def is_known(self, call_id: str) -> bool:
        """Whether a call of the history has this id."""
        return self._reader.ids.is_known(call_id)

    def load(self, items: Sequence[bytes], origin: Origin, *, pictures: bool) -> None:
        """Take the history of a request."""
        found = self._reader.read(items, origin, pictures=pictures)
        if found.restarted:
            self.log = MessageLog(keeps_thinking=self._keeps_thinking)
        for entry in found.entries:
            self.log.add(entry)
        self.log.close()


class MessagesWire:
    """The `Wire` of the Messages API."""

    api = "Messages API"

    def __init__(self, provider: Provider, installation_id: str = "") -> None:
        self._provider = provider
        self._threads: dict[str, _Thread] = {}
        # Parts of requests that this server has refused, and those that it was sent.
        self._refused: set[str] = set()
        self._sent: set[str] = set()
        # The limits on answers that this server has named, by model, and the model and the limit that it was sent.
        self._answer_limits: dict[str, int] = {}
        self._last_request = ("", 0)

    def path(self, prompt: Prompt) -> str:
        return "messages"

    def headers(self, prompt: Prompt) -> dict[str, str]:
        # Asked for after the body, so the history is there.
        thinking = self._thinking(prompt, self._max_tokens(prompt))
        beta = {"anthropic-beta": _INTERLEAVED} if thinking.interleaved else {}
        return {"anthropic-version": _VERSION, **beta}

    def auth_headers(self, token: str) -> dict[str, str]:
        # A key of the user's has a header of its own; what a command or a login gives is a bearer token.
        version = {"anthropic-version": _VERSION}
        if self._provider.api_key_env:
            return {"x-api-key": token, **version}
        return {"authorization": f"Bearer {token}", **version}

    def encode(self, prompt: Prompt) -> bytes:
        head, messages = self._encode_input(prompt)
        thinking = self._thinking(prompt, max_tokens := self._max_tokens(prompt))
        self._last_request = (prompt.model, max_tokens)
        fields: dict[str, Any] = {"max_tokens": max_tokens, "stream": True, **self._options(prompt, thinking)}
        return b"".join((head, messages, self._tail(prompt), b",", encode_json(fields)[1:]))

    def encode_count(self, prompt: Prompt) -> tuple[str, bytes]:
        """As `TokenCounter` says."""
        fresh = MessagesWire(self._provider)
        fresh._refused, fresh._answer_limits = self._refused, self._answer_limits
        head, messages = fresh._encode_input(prompt)
        thinking = fresh._thinking(prompt, self._max_tokens(prompt))
        options = encode_json(fresh._options(prompt, thinking))[1:]
        body = b"".join((head, messages, fresh._tail(prompt), b"," if options != b"}" else b"", options))
        return "messages/count_tokens", body

    def decoder(self, prompt: Prompt) -> MessagesDecoder:
        thread = self._thread(prompt)
        return MessagesDecoder(thread.tools, thread.is_known)

    def adapt(self, status: int, failure: ModelError) -> bool:
        """As `Wire` says: how a model is asked to think, and what of it goes back, differs from server to server."""
        if status not in (400, 422):
            return False
        message = str(failure).lower()
        model, sent = self._last_request
        if (limit := stated_answer_limit(message, sent)) is not None:
            self._answer_limits[model] = limit
            return True
        for part, words in _REFUSALS:
            is_named = refuses_thinking(message) if part == "replay" else any(word in message for word in words)
            if part in self._sent and is_named:
                self._refused.add(part)
                self._sent.discard(part)
                if part == "replay":
                    self._threads.clear()
                return True
        return False

    def _encode_input(self, prompt: Prompt) -> tuple[bytes, bytes]:
        thread = self._thread(prompt)
        thread.load(prompt.input, Origin(self._provider.id, prompt.model, "messages"), pictures=prompt.pictures)
        if thread.log.has_thinking:
            self._sent.add("replay")
        marks = "cache" not in self._refused
        if marks:
            self._sent.add("cache")
        return self._head(prompt, marks=marks), thread.log.encode(marks=marks)

    def _thread(self, prompt: Prompt) -> _Thread:
        # The one asked last is the last, and the first goes when there are too many.
        thread = self._threads.pop(prompt.thread_id, None) or _Thread(keeps_thinking="replay" not in self._refused)
        self._threads[prompt.thread_id] = thread
        if len(self._threads) > _MAX_THREADS:
            del self._threads[next(iter(self._threads))]
        return thread

    def _head(self, prompt: Prompt, *, marks: bool) -> bytes:
        system = [encoded({"type": "text", "text": text}) for text in self._system(prompt)]
        if system and marks:
            system[-1] = system[-1][:-1] + b"," + CACHE_MARK + b"}"
        head = encoded({"model": prompt.model})[:-1]
        return b"".join((head, b',"system":[' + b",".join(system) + b"]" if system else b"", b',"messages":['))

    def _system(self, prompt: Prompt) -> list[str]:
        texts = [prompt.instructions] if prompt.instructions.strip() else []
        if prompt.output_schema is not None and self._format(prompt) is None:
            texts.append(_SCHEMA_WORDS + prompt.output_schema.decode("utf-8", "replace"))
        return texts

    def _tail(self, prompt: Prompt) -> bytes:
        """The tools, in one piece with what says how they are called."""
        thread = self._thread(prompt)
        if thread.tools.load(prompt.tools) or not thread.encoded_tools:
            thread.encoded_tools = b"[" + b",".join(_tool(tool) for tool in thread.tools.tools) + b"]"
        if thread.encoded_tools == b"[]":
            return b""
        choice: dict[str, Any] = {"type": "auto"}
        if not prompt.parallel_tool_calls:
            choice["disable_parallel_tool_use"] = True
        return b',"tools":' + thread.encoded_tools + b',"tool_choice":' + encode_json(choice)

    def _options(self, prompt: Prompt, thinking: Thinking) -> dict[str, Any]:
        options: dict[str, Any] = {}
        if thinking.fields:
            options["thinking"] = thinking.fields
            is_adaptive = thinking.fields["type"] == "adaptive"
            self._sent |= {"thinking", "adaptive" if is_adaptive else "budget"}
            self._sent |= {"display"} if "display" in thinking.fields else set()
        output: dict[str, Any] = {} if thinking.effort is None else {"effort": thinking.effort}
        self._sent |= {"effort"} if output else set()
        if (schema := self._format(prompt)) is not None:
            output["format"] = {"type": "json_schema", "schema": schema}
            self._sent.add("format")
        return {**options, "output_config": output} if output else options

    def _format(self, prompt: Prompt) -> dict[str, Any] | None:
        if prompt.output_schema is None or "format" in self._refused:
            return None
        return supported_schema(prompt.model, as_object(decode_json(prompt.output_schema)))

    def _thinking(self, prompt: Prompt, max_tokens: int) -> Thinking:
        return thinking_for(prompt, max_tokens, has_thought=self._thread(prompt).log.has_thought, refused=self._refused)

    def _max_tokens(self, prompt: Prompt) -> int:
        limit = prompt.max_output_tokens or _MAX_TOKENS
        return min(limit, self._answer_limits.get(prompt.model, limit))


def _tool(tool: FunctionTool) -> bytes:
    parameters = {key: value for key, value in tool.parameters.items() if key not in _NOT_AT_TOP}
    schema = {**parameters, "type": "object"}
    about = {"description": tool.description} if tool.description else {}
    return encoded({"name": tool.name, **about, "input_schema": schema})

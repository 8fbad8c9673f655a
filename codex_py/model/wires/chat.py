"""The Chat Completions API: `POST /chat/completions`. Requests are made here, answers are read in `chat_answer`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from codex_py.errors import ModelError
from codex_py.model.chat_quirks import ChatQuirks, learned, quirks_of
from codex_py.model.client import Prompt
from codex_py.model.providers import Provider
from codex_py.model.wires.chat_answer import ChatDecoder, replayed
from codex_py.model.wires.history import (
    CallStep,
    Content,
    Entry,
    HistoryReader,
    IdForm,
    InputMessage,
    ModelMessage,
    PicturePart,
    ReasoningStep,
    TextStep,
)
from codex_py.model.wires.strict_schema import sent_schema
from codex_py.model.wires.tools import ToolTable
from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.protocol.origin import Origin

# A session and its agents at work.
_MAX_LOGS: Final = 16
_BRIDGE: Final = "Understood."
_NO_OUTPUT: Final = "(no output)"
_PICTURES: Final = "The pictures in the output of the tools above:"
# What Google documents for calls that another model has made: Gemini 3 and later refuse those without a signature.
_UNSIGNED: Final = {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}
_NEEDS_SIGNATURE: Final = r"gemini-(?![12]\b)"
_SCHEMA: Final = "The last message of your answer is JSON without anything around it, and it fits this JSON schema:\n"


class ChatWire:
    """The `Wire` of the Chat Completions API. A session and its agents share it, each with a history of its own."""

    api = "Chat Completions API"

    def __init__(self, provider: Provider, installation_id: str = "") -> None:
        self._provider = provider.id
        self._quirks = quirks_of(provider.id, provider.base_url)
        self._logs: dict[str, _ChatLog] = {}

    def path(self, prompt: Prompt) -> str:
        return "chat/completions"

    def headers(self, prompt: Prompt) -> dict[str, str]:
        return {} if self._quirks.streams else {"accept": "application/json"}

    def auth_headers(self, token: str) -> dict[str, str]:
        return {"authorization": f"Bearer {token}"}

    def encode(self, prompt: Prompt) -> bytes:
        log = self._log(prompt)
        messages = log.extend(prompt, Origin(self._provider, prompt.model, "chat"))
        if system := self._system(prompt, log.opening):
            messages = [system, *messages]
        head = encode_json({"model": prompt.model})[:-1] + b',"messages":['
        return b"".join((head, b",".join(messages), b"],", self._tail(prompt, log.tools)))

    def decoder(self, prompt: Prompt) -> ChatDecoder:
        log = self._log(prompt)
        return ChatDecoder(log.tools, log.is_known)

    def adapt(self, status: int, failure: ModelError) -> bool:
        changed = learned(self._quirks, status, str(failure))
        if changed is None:
            return False
        self._quirks = changed
        # What was encoded may look different now.
        self._logs.clear()
        return True

    def _log(self, prompt: Prompt) -> _ChatLog:
        """The encoded messages of a thread; dropped when too many other threads were used since."""
        log = self._logs.pop(prompt.thread_id, None) or _ChatLog(self._quirks)
        self._logs[prompt.thread_id] = log
        if len(self._logs) > _MAX_LOGS:
            del self._logs[next(iter(self._logs))]
        return log

    def _system(self, prompt: Prompt, opening: Sequence[str]) -> bytes:
        texts = [prompt.instructions, *opening]
        if prompt.output_schema is not None and self._quirks.schema != "json_schema":
            texts.append(_SCHEMA + prompt.output_schema.decode())
        text = "\n\n".join(text for text in texts if text)
        return encode_json({"role": "system", "content": text}) if text else b""

    def _tail(self, prompt: Prompt, table: ToolTable) -> bytes:
        quirks = self._quirks
        fields: dict[str, Any] = {"stream": quirks.streams}
        if quirks.usage and quirks.streams:
            fields["stream_options"] = {"include_usage": True}
        if table.tools:
            fields["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
                }
                for tool in table.tools
            ]
            fields["tool_choice"] = "auto"
            if quirks.parallel or not prompt.parallel_tool_calls:
                fields["parallel_tool_calls"] = prompt.parallel_tool_calls
        if prompt.max_output_tokens is not None:
            fields[quirks.limit] = prompt.max_output_tokens
        if prompt.effort and quirks.effort:
            fields[quirks.effort] = {"effort": prompt.effort} if quirks.effort == "reasoning" else prompt.effort
        if prompt.verbosity and quirks.verbosity:
            fields["verbosity"] = prompt.verbosity
        if prompt.service_tier:
            fields["service_tier"] = prompt.service_tier
        if prompt.output_schema is not None and quirks.schema != "prompt":
            fields["response_format"] = _response_format(prompt.output_schema, quirks.schema)
        if quirks.cache_key:
            fields["prompt_cache_key"] = prompt.thread_id
        return encode_json(fields)[1:]


class _ChatLog:
    """The messages of one thread, encoded once. `opening` is what the host says first, `tools` what is offered."""

    def __init__(self, quirks: ChatQuirks) -> None:
        length = quirks.id_length
        pattern = rf"[a-zA-Z0-9]{{{length}}}" if quirks.plain_ids else rf"[\x21-\x7e]{{1,{length}}}"
        self._quirks = quirks
        self._history = HistoryReader(IdForm(pattern, length))
        self._messages: list[bytes] = []
        self._role = ""
        self._needs_signature = False
        self.opening: list[str] = []
        self.tools = ToolTable()

    def is_known(self, call_id: str) -> bool:
        """Whether a call of the history has this id."""
        return self._history.ids.is_known(call_id)

    def extend(self, prompt: Prompt, origin: Origin) -> Sequence[bytes]:
        """All messages but the system's, with what is new in the prompt; `origin` is whom it is for."""
        self.tools.load(prompt.tools)
        self._needs_signature = self._quirks.extras and re.search(_NEEDS_SIGNATURE, origin.model) is not None
        new = self._history.read(prompt.input, origin, pictures=prompt.pictures)
        entries: Sequence[Entry] = new.entries
        if new.restarted:
            self._messages.clear()
            self._role = ""
            self.opening, entries = _opening(entries)
        self._append(entries)
        return self._messages

    def _append(self, entries: Sequence[Entry]) -> None:
        ours: list[Content] = []
        for entry in entries:
            match entry:
                case InputMessage(_, content):
                    if not self._quirks.alternates:
                        self._append_user(content)
                    ours.append(content)
                case ModelMessage():
                    self._append_joined(ours)
                    if pictures := self._append_answer(entry):
                        ours.append((_PICTURES, *pictures))
                        if not self._quirks.alternates:
                            self._append_user(ours[-1])
        self._append_joined(ours)

    def _append_joined(self, ours: list[Content]) -> None:
        """Append the collected input messages as one if roles must alternate; otherwise they are already appended."""
        if ours and self._quirks.alternates:
            if self._role in ("user", "tool"):
                self._append_message({"role": "assistant", "content": _BRIDGE})
            self._append_user(tuple(part for content in ours for part in content))
        ours.clear()

    def _append_user(self, content: Content) -> None:
        if any(isinstance(part, PicturePart) for part in content):
            self._append_message({"role": "user", "content": [_part(part) for part in content]})
        else:
            self._append_message({"role": "user", "content": "\n\n".join(map(str, content))})

    def _append_answer(self, message: ModelMessage) -> list[PicturePart]:
        """Append the model's steps and the outputs of its calls. Returns their pictures: tool messages take none."""
        calls, pictures = message.calls, list[PicturePart]()
        text = "\n\n".join(step.text for step in message.steps if isinstance(step, TextStep))
        if not text and not calls:
            return pictures
        reasoning = [step.item for step in message.steps if isinstance(step, ReasoningStep)]
        replay = replayed(reasoning, self._quirks, has_calls=bool(calls))
        value: dict[str, Any] = {"role": "assistant", "content": replay.opening + text or None, **replay.fields}
        if calls:
            extras = [as_object(replay.extras.get(call.original_id)) for call in calls]
            if self._needs_signature and not any(extras):
                extras[0] = _UNSIGNED
            value["tool_calls"] = [{**_call(call), **extra} for call, extra in zip(calls, extras, strict=True)]
        self._append_message(value)
        for call in calls:
            shown = "\n".join(part for part in call.output if isinstance(part, str))
            pictures += [part for part in call.output if isinstance(part, PicturePart)]
            self._append_message({"role": "tool", "tool_call_id": call.call_id, "content": shown or _NO_OUTPUT})
        return pictures

    def _append_message(self, value: dict[str, Any]) -> None:
        self._messages.append(encode_json(value))
        self._role = str(value["role"])


def _opening(entries: Sequence[Entry]) -> tuple[list[str], Sequence[Entry]]:
    """Split off the host's texts at the beginning, which go into the single system message, from the other entries."""
    texts: list[str] = []
    for index, entry in enumerate(entries):
        match entry:
            case InputMessage("developer", content) if all(isinstance(part, str) for part in content):
                texts.append("\n\n".join(map(str, content)))
            case _:
                return texts, entries[index:]
    return texts, ()


def _part(part: str | PicturePart) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    address = {"url": part.url, "detail": part.detail} if part.detail in ("low", "high", "auto") else {"url": part.url}
    return {"type": "image_url", "image_url": address}


def _call(call: CallStep) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _response_format(schema: bytes, form: str) -> dict[str, Any]:
    if form == "json_object":
        return {"type": "json_object"}
    sent = sent_schema(schema)
    named = {"name": "codex_output_schema", "strict": sent.strict, "schema": decode_json(sent.encoded)}
    return {"type": "json_schema", "json_schema": named}

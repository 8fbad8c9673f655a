"""The messages of a Messages request: a history in blocks that only grows, and where the cache may end.

Roles alternate, the user comes first and last, and results stand right behind the message with their calls. Without
its `cache_control` fields each request is a byte prefix of the next, up to the end of its last block.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from codex_py.model.wires.history import (
    CallStep,
    Content,
    Entry,
    InputMessage,
    ModelMessage,
    PicturePart,
    ReasoningStep,
    TextStep,
)
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

Role: TypeAlias = Literal["user", "assistant"]

# What the user says where a request would begin or end with what the model has said.
GO_ON: Final = "Continue."
CACHE_MARK: Final = b'"cache_control":{"type":"ephemeral"}'
_PICTURE: Final = re.compile(r"data:(image/(?:png|jpe?g|gif|webp));base64,(.*)", re.DOTALL)
_NO_TEXT: Final = "(no text)"
_NO_PICTURE: Final = "[a picture that this model cannot be shown]"


class MessageLog:
    """The messages so far. `keeps_thinking` is false for a server that does not take its own thinking back."""

    def __init__(self, *, keeps_thinking: bool = True) -> None:
        self._keeps_thinking = keeps_thinking
        # Each with what stands before it, so that joining them is the whole array but for its ends.
        self._blocks: list[bytes] = []
        self._role: Role | None = None
        # Thinking is not the last block of a message: it waits for what it led to.
        self._thinking: list[bytes] = []
        self._thoughts = 0
        self._last_user = -1
        self._turn_thought: bool | None = None
        # The blocks with marks, and the last one before the last answer, for a session that goes on in a new process.
        self._newest = -1
        self._stable = -1
        self._before_answer = -1

    def add(self, entry: Entry) -> None:
        """Add what comes next in the history."""
        match entry:
            case InputMessage(_, content):
                for part in content:
                    if block := _part(part):
                        self._add("user", block)
            case ModelMessage(steps):
                for step in steps:
                    self._add_step(step)
                for call in entry.calls:
                    self._add("user", _result(call))
                # Behind all results, which come first.
                for call in entry.calls:
                    for part in call.output if call.failed else ():
                        if isinstance(part, PicturePart):
                            self._add("user", encoded(_picture(part)))

    def close(self) -> None:
        """The request is all there: it ends with what the user says, and the marks move on to there."""
        # Thinking that led to nothing, because the answer broke off.
        self._thinking.clear()
        if self._role != "user":
            self._add("user", _text(GO_ON))
        if self._newest < 0:
            self._stable = self._before_answer
        elif self._newest != self._last_user:
            self._stable = self._newest
        self._newest = self._last_user

    @property
    def has_thought(self) -> bool:
        """False when the answer under way, with results behind it, did not begin with thinking."""
        return self._turn_thought is not False

    @property
    def has_thinking(self) -> bool:
        """Whether there is thinking among the blocks."""
        return self._thoughts > 0

    def encode(self, *, marks: bool) -> bytes:
        """The array of messages without its opening bracket."""
        blocks = self._blocks.copy()
        for index in {self._newest, self._stable} if marks else ():
            if index >= 0:
                blocks[index] = blocks[index][:-1] + b"," + CACHE_MARK + b"}"
        blocks.append(b"]}]")
        return b"".join(blocks)

    def _add_step(self, step: TextStep | ReasoningStep | CallStep) -> None:
        match step:
            case ReasoningStep(item):
                if self._keeps_thinking:
                    self._thinking.append(_thinking(item))
            case TextStep(text):
                self._add("assistant", _text(text))
            case CallStep():
                self._add("assistant", _call(step))

    def _add(self, role: Role, block: bytes) -> None:
        if self._role is None and role == "assistant":
            self._add("user", _text(GO_ON))
        thinking = self._thinking if role == "assistant" else []
        self._thinking = []
        self._thoughts += len(thinking)
        if role == "assistant" and self._turn_thought is None:
            self._turn_thought = bool(thinking)
        elif role == "user" and not block.startswith(b'{"type":"tool_result"') and self._role != "user":
            self._turn_thought = None
        for each in (*thinking, block):
            self._append(role, each)

    def _append(self, role: Role, block: bytes) -> None:
        if role == self._role:
            opening = b","
        else:
            opening = (b"]}," if self._role else b"") + b'{"role":"%b","content":[' % role.encode()
            if role == "assistant":
                self._before_answer = self._last_user
        self._role = role
        self._blocks.append(opening + block)
        if role == "user":
            self._last_user = len(self._blocks) - 1


def encoded(value: Mapping[str, Any]) -> bytes:
    """The JSON of a value. Half a surrogate pair, which the API takes for broken JSON, becomes `?`."""
    raw = encode_json(value)
    if b"\\ud" not in raw:
        return raw
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def _text(text: str) -> bytes:
    return encoded({"type": "text", "text": text})


def _part(part: str | PicturePart) -> bytes:
    """A block, or nothing for a text of blanks, which the API refuses."""
    if isinstance(part, str):
        return _text(part) if part.strip() else b""
    return encoded(_picture(part))


def _picture(part: PicturePart) -> dict[str, Any]:
    if found := _PICTURE.fullmatch(part.url):
        return {
            "type": "image",
            "source": {"type": "base64", "media_type": found[1].replace("jpg", "jpeg"), "data": found[2]},
        }
    if part.url.startswith(("https://", "http://")):
        return {"type": "image", "source": {"type": "url", "url": part.url}}
    return {"type": "text", "text": _NO_PICTURE}


def _thinking(item: Mapping[str, Any]) -> bytes:
    sealed = item.get("encrypted_content")
    if item.get("redacted"):
        return encoded({"type": "redacted_thinking", "data": sealed})
    texts = [as_object(part).get("text") for part in as_list(item.get("summary"))]
    text = "".join(part for part in texts if isinstance(part, str))
    return encoded({"type": "thinking", "thinking": text, "signature": sealed or ""})


def _call(call: CallStep) -> bytes:
    fields: dict[str, Any] = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
    arguments = call.arguments
    if "\\ud" in arguments.lower() or not arguments.isascii():
        try:
            return encoded({**fields, "input": decode_json(arguments)})
        except ValueError:
            # A number beyond all floats: it goes as it came.
            pass
    return encoded(fields)[:-3] + arguments.encode("utf-8", "replace") + b"}"


def _result(call: CallStep) -> bytes:
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.call_id}
    if call.failed:
        # The API takes no such result without text, and none with a picture.
        text = _result_content(tuple(part for part in call.output if isinstance(part, str)))
        return encoded({**fields, "content": text or _NO_TEXT, "is_error": True})
    if content := _result_content(call.output):
        fields["content"] = content
    return encoded(fields)


def _result_content(output: Content) -> str | list[dict[str, Any]]:
    if all(isinstance(part, str) for part in output):
        text = "".join(part for part in output if isinstance(part, str))
        return text if text.strip() else ""
    return [
        _picture(part) if isinstance(part, PicturePart) else {"type": "text", "text": part}
        for part in output
        if isinstance(part, PicturePart) or part.strip()
    ]

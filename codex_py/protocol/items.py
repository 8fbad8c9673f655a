"""History items: what the model was sent and what it answered.

The provider owns this vocabulary and we carry it: an item is encoded once, and those bytes go to the history, the
rollout file and every later request, so unknown types and unknown fields survive the round trip. Code that needs to
look inside reads a typed view.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.arguments import readable_arguments
from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.protocol.value import Value

_TYPE_FIRST: Final = b'{"type":"'
_CALLS: Final = (b'{"type":"function_call', b'{"type":"custom_tool_call', b'{"type":"local_shell_call')
_EXCHANGE_TYPE: Final = rb'\{"type":"(function|custom_tool|local_shell)_call(_output)?"'
_OUTPUTS: Final = (b'{"type":"function_call_output"', b'{"type":"custom_tool_call_output"')
_FAILED: Final = b',"is_error":true}'
# Within a JSON text the quotes would be escaped, so this key stands for itself.
_ASSISTANT: Final = b'"role":"assistant"'
_CALL_ID: Final = rb'"call_id":"([^"\\]*)"'


class ResponseItem:
    """One item as the bytes that go on the wire and to disk: a compact JSON object without a newline."""

    __slots__ = ("encoded",)

    def __init__(self, encoded: bytes) -> None:
        """Take bytes that are already in our encoding; what came from outside goes through `from_wire`."""
        self.encoded: Final = encoded

    @classmethod
    def from_wire(cls, value: dict[str, Any]) -> ResponseItem:
        """Encode an item once, `type` first and the other keys in the order they came."""
        return cls(encode_json({"type": value.get("type", ""), **value}))

    @property
    def type(self) -> str:
        """The item's `type`, read from its first bytes without decoding the rest."""
        if self.encoded.startswith(_TYPE_FIRST):
            end = self.encoded.find(b'"', len(_TYPE_FIRST))
            return self.encoded[len(_TYPE_FIRST) : end].decode()
        return str(self.decode().get("type", ""))

    @property
    def is_of_model(self) -> bool:
        """Whether the model made it or a tool answered it: all but the messages of the host and of the user."""
        return self.type != "message" or _ASSISTANT in self.encoded

    def decode(self) -> dict[str, Any]:
        """The whole item as a fresh dict."""
        return decode_json(self.encoded)

    def view(self) -> ItemView:
        """The item as one of the types this program acts on; anything else is `OtherItem`."""
        return view_of(self.decode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResponseItem) and other.encoded == self.encoded

    def __hash__(self) -> int:
        return hash(self.encoded)

    def __repr__(self) -> str:
        return f"ResponseItem({self.encoded[:120]!r})"


class Message(Value):
    role: str
    text: str
    id: str = ""


class Reasoning(Value):
    """What a reasoning item lets the user read: the summary, and the thinking itself where the server sends it."""

    summary: str
    raw: str = ""


# What calls of a tool come to: by this they are drawn, and hooks and roles choose by it.
ToolType: TypeAlias = Literal["reads", "searches", "writes", "runs", "plans", "asks", "delegates", "other"]


class ToolCall(Value):
    """A call the model made. `custom` calls carry free text in `arguments`, the others a JSON object."""

    call_id: str
    name: str
    arguments: str
    custom: bool = False
    namespace: str | None = None


class CallOutput(Value):
    call_id: str


class WebSearchCall(Value):
    id: str
    query: str
    action: dict[str, Any]


class OtherItem(Value):
    type: str


ItemView: TypeAlias = Message | Reasoning | ToolCall | CallOutput | WebSearchCall | OtherItem


class Exchange(Value):
    """A call or its output, as far as pairing them goes. A named tuple, because a long history makes thousands."""

    call_id: str
    is_output: bool
    custom: bool


def exchange_of(item: ResponseItem) -> Exchange | None:
    """The data that pairs a call with its output; None for other items. Looks at the bytes: a long history has many."""
    match = re.match(_EXCHANGE_TYPE, item.encoded) if item.encoded.startswith(_CALLS) else None
    if match is None:
        return None
    # Within a JSON text the quotes would be escaped, so this key stands for itself; twice, it may be a nested one.
    ids = re.findall(_CALL_ID, item.encoded)
    call_id = ids[0].decode() if len(ids) == 1 else item.decode().get("call_id")
    return Exchange(call_id, match[2] is not None, match[1] == b"custom_tool") if isinstance(call_id, str) else None


def message(role: str, *texts: str) -> ResponseItem:
    """A message of the host (role `developer` or `user`) with one `input_text` part for each text."""
    return message_of_content(role, [{"type": "input_text", "text": text} for text in texts])


def message_of_content(role: str, content: Sequence[dict[str, Any]]) -> ResponseItem:
    """A message of the host made of ready content parts (`input_text`, `input_image`)."""
    return ResponseItem(encode_json({"type": "message", "role": role, "content": list(content)}))


def call_output(call: ToolCall, output: str | Sequence[dict[str, Any]], *, failed: bool = False) -> ResponseItem:
    """The answer to a call: a text, or content parts (`input_text`, `input_image`).

    That the call has `failed` is the last field, `is_error`, which only some APIs are sent.
    """
    item_type = "custom_tool_call_output" if call.custom else "function_call_output"
    fields = {"type": item_type, "call_id": call.call_id, "output": output if isinstance(output, str) else list(output)}
    return ResponseItem(encode_json({**fields, "is_error": True} if failed else fields))


def refusal_of(item: ResponseItem) -> str:
    """The words in which a message of the model refuses to answer; empty for every other item."""
    if b'"refusal"' not in item.encoded or item.type != "message":
        return ""
    refusals = [as_object(part).get("refusal") for part in as_list(item.decode().get("content"))]
    return " ".join(text for text in refusals if isinstance(text, str))


def without_error_mark(encoded: bytes) -> bytes:
    """An item without the field that says that a call has failed."""
    if encoded.endswith(_FAILED) and encoded.startswith(_OUTPUTS):
        return encoded[: -len(_FAILED)] + b"}"
    return encoded


def view_of(value: dict[str, Any]) -> ItemView:
    """A decoded item as one of the types this program acts on."""
    match value:
        case {"type": "message", "role": str(role)}:
            return Message(role, _texts(value.get("content"), ""), str(value.get("id", "")))
        case {"type": "reasoning"}:
            return Reasoning(_texts(value.get("summary"), "\n\n"), _texts(value.get("content"), "\n\n"))
        case {"type": "function_call", "call_id": str(call_id)}:
            # One without a name is a call all the same: every call gets its answer.
            name, namespace = value.get("name"), value.get("namespace")
            arguments = value.get("arguments")
            return ToolCall(
                call_id,
                name if isinstance(name, str) else "",
                readable_arguments(arguments) if isinstance(arguments, str) else encode_json(arguments or {}).decode(),
                namespace=namespace if isinstance(namespace, str) else None,
            )
        case {"type": "custom_tool_call", "call_id": str(call_id)}:
            name = value.get("name")
            return ToolCall(call_id, name if isinstance(name, str) else "", str(value.get("input", "")), custom=True)
        case {"type": "local_shell_call", "call_id": str(call_id)}:
            # Never offered; a model that makes one all the same reads that nobody runs it.
            return ToolCall(call_id, "local_shell", encode_json(value.get("action") or {}).decode())
        case {"type": "function_call_output" | "custom_tool_call_output", "call_id": str(call_id)}:
            return CallOutput(call_id)
        case {"type": "web_search_call"}:
            action = as_object(value.get("action"))
            return WebSearchCall(str(value.get("id", "")), str(action.get("query", "")), action)
        case _:
            return OtherItem(str(value.get("type", "")))


def _texts(content: object, separator: str) -> str:
    if isinstance(content, str):
        return content
    # A model that will not answer says so in a part of its own.
    texts = [as_object(item).get("text", as_object(item).get("refusal")) for item in as_list(content)]
    return separator.join(text for text in texts if isinstance(text, str))

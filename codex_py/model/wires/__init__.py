"""The wires: how requests and answers of each API look. One module each, which `open_wire` imports when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Final, Protocol, cast, runtime_checkable

from codex_py.errors import ModelError
from codex_py.model.client import Prompt, ResponseEvent
from codex_py.model.providers import Provider
from codex_py.protocol.encoding import as_list, as_object, decode_json, decode_or_none
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import WireApi


class Wire(Protocol):
    """How one API looks. Knows nothing of statuses, retries, deadlines and proxies.

    There is one for each client, so it may keep what it has encoded.
    """

    @property
    def api(self) -> str:
        """The name of the API, for messages: `Responses API`."""
        ...

    def path(self, prompt: Prompt) -> str:
        """Where to post the prompt, below the base address."""
        ...

    def headers(self, prompt: Prompt) -> dict[str, str]:
        """The headers that this wire adds to those of every request; names in lower case."""
        ...

    def auth_headers(self, token: str) -> dict[str, str]:
        """The headers that let a request in, also one for the list of models."""
        ...

    def encode(self, prompt: Prompt) -> bytes:
        """The request as JSON. A longer history extends the body of a shorter one up to the end of its items."""
        ...

    def decoder(self, prompt: Prompt) -> Decoder:
        """A decoder for one answer to an encoded prompt. Other prompts may have been encoded since."""
        ...

    def adapt(self, status: int, failure: ModelError) -> bool:
        """Learn from a refused request what this server does not take; whether to encode and send it once more."""
        ...


@runtime_checkable
class TokenCounter(Protocol):
    """A wire whose API counts the tokens of a request."""

    def encode_count(self, prompt: Prompt) -> tuple[str, bytes]:
        """The path and the body that ask for the count. Nothing changes of what the wire has encoded."""
        ...


class Decoder(Protocol):
    """Reads the server-sent events of one answer, in order."""

    def decode(self, data: str) -> Sequence[ResponseEvent]:
        """Decode the data of one event; empty for an unknown, unparsable or unused event.

        Items are Responses items. Raises `ModelError` for an event that says that the answer has failed.
        """
        ...

    def decode_body(self, body: bytes) -> Sequence[ResponseEvent] | None:
        """An answer that came whole, as JSON in place of a stream; None for what is no such answer."""
        ...

    def finish(self) -> Sequence[ResponseEvent]:
        """The body has ended: what is left, with `Completed` if the answer is whole without its usual end."""
        ...


# The module of each wire and the class in it, so that nobody imports one that is not used.
WIRES: Final[Mapping[WireApi, tuple[str, str]]] = MappingProxyType(
    {
        "responses": ("codex_py.model.wires.responses", "ResponsesWire"),
        "chat": ("codex_py.model.wires.chat", "ChatWire"),
        "messages": ("codex_py.model.wires.messages", "MessagesWire"),
    }
)


def count_in(body: bytes) -> int | None:
    """The number of tokens in an answer to `encode_count`."""
    count = as_object(decode_or_none(body.decode("utf-8", "replace"))).get("input_tokens")
    return count if isinstance(count, int) and count > 0 else None


def compacted_items(body: bytes) -> list[ResponseItem]:
    """The items in an answer of `/responses/compact`; empty if it is none."""
    try:
        output = as_list(as_object(decode_json(body.decode("utf-8", "replace"))).get("output"))
        return [ResponseItem.from_wire(value) for value in map(as_object, output) if isinstance(value.get("type"), str)]
    except ValueError:
        return []


def open_wire(provider: Provider, installation_id: str = "") -> Wire:
    """The wire of a provider."""
    module, name = WIRES[provider.wire_api]
    wire_class = cast("Callable[[Provider, str], Wire]", getattr(import_module(module), name))
    return wire_class(provider, installation_id)

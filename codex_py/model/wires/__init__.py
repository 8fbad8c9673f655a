"""The wires: how requests and answers of each API look. One module each; `WIRES` names them for `wire_api`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from codex_py.model.client import Prompt, ResponseEvent
from codex_py.model.providers import Provider
from codex_py.model.wires.responses import ResponsesWire
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
        """What a request carries beside the headers of every request; names in lower case."""
        ...

    def auth_headers(self, token: str) -> dict[str, str]:
        """The headers that let a request in, also one for the list of models."""
        ...

    def encode(self, prompt: Prompt) -> bytes:
        """The request as JSON. A longer history extends the body of a shorter one up to the end of its items."""
        ...

    def decoder(self) -> Decoder:
        """What reads one answer."""
        ...


class Decoder(Protocol):
    """Reads the server-sent events of one answer, in order."""

    def decode(self, data: bytes) -> Sequence[ResponseEvent]:
        """What the data of one event means; nothing for what is unknown, unparsable or of no use here.

        Items are Responses items. Raises `ModelError` for an event that says that the answer has failed.
        """
        ...

    def finish(self) -> Sequence[ResponseEvent]:
        """The body has ended: what is left, with `Completed` if the answer is whole without its usual end."""
        ...


WIRES: Final[Mapping[WireApi, Callable[[Provider, str], Wire]]] = MappingProxyType({"responses": ResponsesWire})

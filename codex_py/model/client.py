"""What the core asks of a model and what comes back: a prompt, the events of the answer, and the client between them.

These are the same for every provider and every wire. The HTTP side is in `provider_client.py` and `wires/`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Literal, Protocol, TypeAlias

from codex_py.model.retry import RetryBudget
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import CompactionWay, RequestCost, TokenUsage
from codex_py.protocol.value import Value


class ParentTurn(Value):
    """The turn that has started an agent. `session_id` and `root_turn_id` are of the session at the top, a user's."""

    thread_id: str
    turn_id: str
    session_id: str
    root_turn_id: str


class Prompt(Value):
    """Everything that decides the request body, and nothing else.

    `input` holds encoded Responses items, `tools` an encoded array of Responses tools (`b"[]"` for none),
    `output_schema` an encoded JSON schema; a wire of another API translates them.
    `window` counts the compactions of the thread so far. `kind` says what the request is for; one for the compaction
    endpoint asks for no stream and stores nothing by itself. `parent` is there in a request of an agent's.
    `max_output_tokens` is where the answer must end; OpenAI is not sent it. `pictures` says that the model can see.
    `provider` is the id of the one to ask, where there may be several.
    """

    model: str
    instructions: str
    input: Sequence[bytes]
    tools: bytes
    thread_id: str
    turn_id: str
    window: int = 0
    parallel_tool_calls: bool = True
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    service_tier: str | None = None
    output_schema: bytes | None = None
    max_output_tokens: int | None = None
    kind: Literal["turn", "compaction", "compaction_endpoint"] = "turn"
    parent: ParentTurn | None = None
    pictures: bool = True
    provider: str = ""

    @property
    def session_id(self) -> str:
        """The session of the user's that the thread belongs to."""
        return self.parent.session_id if self.parent else self.thread_id

    @property
    def root_turn_id(self) -> str:
        """The turn of the user's that the turn belongs to."""
        return self.parent.root_turn_id if self.parent else self.turn_id

    @property
    def window_id(self) -> str:
        """The thread and how often it was compacted, as the server gets them."""
        return f"{self.thread_id}:{self.window}"


class Created(Value):
    """The server has begun to answer."""


class StreamTextDelta(Value):
    text: str


class StreamReasoningDelta(Value):
    text: str


class ArgumentsDelta(Value):
    """A piece of a tool call's arguments; `ItemDone` brings them whole."""

    text: str


class ToolCallStarted(Value):
    """The model has begun to write a call of this tool; `ItemDone` brings it."""

    name: str = ""


class ItemDone(Value):
    item: ResponseItem


class AnswerNote(Value):
    """What the user should know of an answer that counts all the same, as one line: a refusal, an odd end."""

    text: str


class Completed(Value):
    """The answer is whole. `end_turn` False asks for another request even without a call.

    `cost` is there where somebody counts it.
    """

    usage: TokenUsage | None
    end_turn: bool | None
    cost: RequestCost | None = None


ResponseEvent: TypeAlias = (
    Created
    | StreamTextDelta
    | StreamReasoningDelta
    | ArgumentsDelta
    | ToolCallStarted
    | ItemDone
    | AnswerNote
    | Completed
)


class TurnState:
    """The value that the server wants sent back within one turn, and only there. Make a new one for each turn."""

    __slots__ = ("refused_pictures", "value")

    def __init__(self) -> None:
        self.value: str | None = None
        # The addresses of pictures that the server refused, where it took the request without them.
        self.refused_pictures: set[str] = set()

    def note(self, value: str | None) -> None:
        """Keep what an answer's header says, if it can be sent back; None changes nothing."""
        if value is not None and value.isascii() and value.isprintable():
            self.value = value


# Returns when a request may be sent. Raises `ModelError` where it may not.
Admit: TypeAlias = Callable[[], Awaitable[None]]


async def admit_always() -> None:
    """The `Admit` of a client whose requests nobody counts."""


class ModelClient(Protocol):
    """A model that can be asked."""

    @property
    def compaction(self) -> CompactionWay:
        """How the provider compacts a history; `local` where only the model itself can."""
        ...

    def watch(self, *, add_secrets: Callable[[Sequence[str]], None], warn: Callable[[str], None]) -> None:
        """Pass secrets that are new after a renewal to `add_secrets`, and `warn` what the user should know of it."""
        ...

    def retry_budget(self) -> RetryBudget:
        """A fresh budget, for one sampling request."""
        ...

    def stream(
        self, prompt: Prompt, *, turn_state: TurnState, admit: Admit = admit_always
    ) -> AsyncGenerator[ResponseEvent, None]:
        """Make one attempt and yield its events; the last one is `Completed`.

        `admit` is awaited before each request: an attempt has more than one where a server refuses a part of the first,
        or its login has to be renewed.

        Raises `ModelError` for every other outcome; no message of it shows a secret. Closing the generator, or
        cancelling its task, closes the connection at once, unless the answer was whole.
        """
        ...

    async def compact(self, prompt: Prompt, *, admit: Admit = admit_always) -> list[ResponseItem]:
        """The items that replace a history, from the provider's own endpoint; one attempt.

        Raises `ModelError` like `stream`.
        """
        ...

    async def count_tokens(self, prompt: Prompt) -> int | None:
        """The provider's token count of a prompt; None if it offers none. Raises `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Close the connection. Safe to call more than once."""
        ...

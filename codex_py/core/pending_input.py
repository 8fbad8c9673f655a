"""Input that arrives during a running turn: messages of the user, and results of the commands they ran themselves."""

from __future__ import annotations

from collections.abc import Sequence

from codex_py.protocol.input import UserInput
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value


class PendingMessage(Value):
    """A message of the user; `message` is None when only skills were picked. `context` is appended after it."""

    input: tuple[UserInput, ...]
    message: ResponseItem | None
    context: tuple[ResponseItem, ...] = ()


class PendingInput:
    """Queues input for the next request, in order of arrival."""

    def __init__(self) -> None:
        self._waiting: list[PendingMessage | ResponseItem] = []

    def add(self, item: PendingMessage | ResponseItem) -> None:
        self._waiting.append(item)

    def withdraw(self, item: ResponseItem) -> None:
        """Remove an item, unless it was taken already."""
        self._waiting = [waiting for waiting in self._waiting if waiting is not item]

    @property
    def wants_answer(self) -> bool:
        """Whether there is a message of the user that the model has not read."""
        return any(isinstance(item, PendingMessage) for item in self._waiting)

    def take(self) -> Sequence[PendingMessage | ResponseItem]:
        """Remove and return all of it."""
        taken, self._waiting = self._waiting, []
        return taken

    def take_items(self) -> list[ResponseItem]:
        """Remove and return what needs no answer."""
        items = [item for item in self._waiting if isinstance(item, ResponseItem)]
        self._waiting = [item for item in self._waiting if isinstance(item, PendingMessage)]
        return items

    def take_messages(self) -> list[PendingMessage]:
        """Remove and return the messages of the user."""
        messages = [item for item in self._waiting if isinstance(item, PendingMessage)]
        self._waiting = [item for item in self._waiting if not isinstance(item, PendingMessage)]
        return messages

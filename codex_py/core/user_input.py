"""The user's message of a turn, and the input that arrives while the turn runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from codex_py.context.images import image_content
from codex_py.protocol.items import ResponseItem, message_of_content
from codex_py.protocol.ops import ImageInput, ImageUrlInput, TextInput, UserInput
from codex_py.protocol.value import Value


def texts_of(inputs: Sequence[UserInput]) -> tuple[str, ...]:
    """The texts among what the user hands in."""
    return tuple(item.text for item in inputs if isinstance(item, TextInput))


async def build_user_message(inputs: Sequence[UserInput], *, cwd: Path) -> ResponseItem | None:
    """One message: the pictures in their order, then the texts; None when only skills were picked.

    Raises `UserError` for a picture it cannot read.
    """
    images = [
        item.url if isinstance(item, ImageUrlInput) else item.path
        for item in inputs
        if isinstance(item, ImageInput | ImageUrlInput)
    ]
    pictures = await asyncio.to_thread(image_content, images, cwd=cwd) if images else []
    texts = [{"type": "input_text", "text": text} for text in texts_of(inputs)]
    return message_of_content("user", [*pictures, *texts]) if pictures or texts else None


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

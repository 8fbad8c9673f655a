"""Messages of a client that no turn has taken yet: each is sent as an item when one does."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from codex_py.server.app import items
from codex_py.server.app.inputs import is_message_text
from codex_py.server.app.items import Item


class _PendingMessage:
    """`has_arrived` when the session has it."""

    def __init__(self, content: Sequence[Item]) -> None:
        self.content: Final = content
        self.has_arrived = False


class PendingMessages:
    """In order. Content is sent with the texts from the session's events, which are redacted."""

    def __init__(self) -> None:
        self._waiting: list[_PendingMessage] = []

    @contextmanager
    def expecting(self, content: Sequence[Item]) -> Generator[None]:
        """The client sends this, and the session gets it meanwhile; if the session refuses it, it is dropped."""
        pending = _PendingMessage(content)
        self._waiting.append(pending)
        try:
            yield
        except BaseException:
            self._waiting = [message for message in self._waiting if message is not pending]
            raise
        pending.has_arrived = True

    def forget(self) -> None:
        """What has arrived and was not taken up never will be."""
        self._waiting = [message for message in self._waiting if not message.has_arrived]

    def take(self, texts: list[str]) -> list[Item]:
        """The content of the first, with the texts that belong to it, which are taken; empty when nothing waits."""
        content: list[Item] = []
        for item in self._waiting.pop(0).content if self._waiting else ():
            text = texts.pop(0) if texts and is_message_text(item) else ""
            content.append(items.text_content(text) if item["type"] == "text" else item)
        return content

    def take_all(self, texts: list[str]) -> Iterator[list[Item]]:
        """What a turn begins with: all that has arrived, and of what is on its way that whose texts are there.

        What has arrived and has texts of which none is there was taken back on its way: it is dropped.
        """
        yield self.take(texts)
        while self._waiting and (texts or self._waiting[0].has_arrived):
            if texts or not any(map(is_message_text, self._waiting[0].content)):
                yield self.take(texts)
            else:
                self._waiting.pop(0)

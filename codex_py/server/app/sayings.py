"""What a client has said to a thread and no turn has taken up yet: it is told as an item when one does."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from codex_py.server.app import items
from codex_py.server.app.inputs import is_said
from codex_py.server.app.items import Item


class _Saying:
    """`has_arrived` when the session has it."""

    def __init__(self, content: Sequence[Item]) -> None:
        self.content: Final = content
        self.has_arrived = False


class Sayings:
    """In their order. Content is told with the texts that the session tells of it: they have no secrets in them."""

    def __init__(self) -> None:
        self._waiting: list[_Saying] = []

    @contextmanager
    def expecting(self, content: Sequence[Item]) -> Generator[None]:
        """The client says this, and the session gets it meanwhile; what it does not take was not said."""
        saying = _Saying(content)
        self._waiting.append(saying)
        try:
            yield
        except BaseException:
            self._waiting = [one for one in self._waiting if one is not saying]
            raise
        saying.has_arrived = True

    def forget(self) -> None:
        """What has arrived and was not taken up never will be."""
        self._waiting = [one for one in self._waiting if not one.has_arrived]

    def take(self, texts: list[str]) -> list[Item]:
        """The content of the first, with the texts that belong to it, which are taken; empty when nothing waits."""
        content: list[Item] = []
        for part in self._waiting.pop(0).content if self._waiting else ():
            text = texts.pop(0) if texts and is_said(part) else ""
            content.append(items.text_content(text) if part["type"] == "text" else part)
        return content

    def take_all(self, texts: list[str]) -> Iterator[list[Item]]:
        """What a turn begins with: all that has arrived, and of what is on its way that whose texts are there.

        What has arrived and has texts of which none is there was taken back on its way: it is dropped.
        """
        yield self.take(texts)
        while self._waiting and (texts or self._waiting[0].has_arrived):
            if texts or not any(map(is_said, self._waiting[0].content)):
                yield self.take(texts)
            else:
                self._waiting.pop(0)

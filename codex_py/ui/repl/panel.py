"""Panels: what replaces the input for a while, such as a question or a picker. One is open, others wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import AnyContainer

T = TypeVar("T")


class Panel(Protocol[T]):
    """Draws itself, takes the keys, and settles `result`, which closes it.

    Both methods are called once, when its turn comes. The first window of the container that can have the focus gets
    it. All keys but those that stop the program go to the panel: it binds Escape and Ctrl-C itself, to its "no".
    """

    title: str
    result: asyncio.Future[T]

    def container(self) -> AnyContainer: ...

    def key_bindings(self) -> KeyBindings: ...


class OpenPanel:
    """The panel on the screen, with what it gave for it."""

    def __init__(self, panel: Panel[Any]) -> None:
        self.panel = panel
        self.container = panel.container()
        self.bindings = panel.key_bindings()


class Panels:
    """Shows panels one after the other, in the order in which they came. `on_change` is called on a change."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._waiting: deque[Panel[Any]] = deque()
        self.open: OpenPanel | None = None

    @property
    def waiting(self) -> int:
        """How many come after the one that is open."""
        return len(self._waiting) - (self.open is not None)

    async def show(self, panel: Panel[T]) -> T:
        """Show a panel and return its result. Cancelling removes it, also while it still waits for its turn."""
        self._waiting.append(panel)
        self._bring_first()
        try:
            return await panel.result
        finally:
            if panel in self._waiting:
                self._waiting.remove(panel)
            self._bring_first()

    def close_settled(self) -> None:
        """Take the last panel from the screen as soon as it is settled: what was typed right behind is for the input.

        When another one waits nothing is done: no key may answer what was not yet seen.
        """
        if len(self._waiting) == 1 and self._waiting[0].result.done():
            self._waiting.clear()
            self._bring_first()

    def _bring_first(self) -> None:
        first = self._waiting[0] if self._waiting else None
        if first is (self.open.panel if self.open else None):
            return
        self.open = OpenPanel(first) if first is not None else None
        self._on_change()

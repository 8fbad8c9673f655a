"""What all panels have in common: the edges, the size, how they are settled, and Escape."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    VSplit,
    Window,
)
from prompt_toolkit.layout.processors import PasswordProcessor

from codex_py.ui.repl.input import WordWrap
from codex_py.ui.repl.panels.drawing import Row, fitted, joined, keys_row, title_row

T = TypeVar("T")

_EDGES: Final = 2
_ROOMY: Final = 12


class Frame(Generic[T]):
    """A panel with rows between two edges, and a line to type in where `typed` is set.

    `refusal` is what Escape and Ctrl-C settle it with. `badge` gives a word behind the title, such as `1 more`. With
    `stop` Ctrl-C asks it first to stop what asks; it says whether there was something.
    """

    # Whether rows above stay in view, such as the model's last message.
    keeps_view = True

    def __init__(self, title: str, refusal: T, *, typed: Buffer | None = None, hidden: bool = False) -> None:
        self.title = title
        self.result: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.badge: Callable[[], str] = lambda: ""
        self.stop: Callable[[], bool] = lambda: False
        self._refusal = refusal
        self._typed = typed
        self._hidden = hidden

    def settle(self, value: T) -> None:
        """Close the panel with a result; the first one counts."""
        if not self.result.done():
            self.result.set_result(value)

    def dismiss(self) -> None:
        """Close the panel as Escape does."""
        self.settle(self._refusal)

    def rows(self, width: int, height: int) -> list[Row]:
        """The rows between the title and the input line, at most `height`."""
        raise NotImplementedError

    def rows_below(self, width: int, height: int) -> list[Row]:
        """The rows below the input line."""
        return []

    def keys(self) -> Sequence[tuple[str, str]]:
        """The keys that are listed below, the most important first."""
        raise NotImplementedError

    def prompt(self) -> str:
        """The text in front of the input line."""
        return "› "

    def container(self) -> AnyContainer:
        if self._typed is None:
            return self._text(self._all, focusable=True)
        typed = Window(
            BufferControl(self._typed, input_processors=[PasswordProcessor() if self._hidden else WordWrap()]),
            wrap_lines=True,
            dont_extend_height=True,
            style="class:menu",
        )
        before = Window(
            FormattedTextControl(lambda: [("", "  "), ("class:accent", self.prompt())]),
            dont_extend_width=True,
            dont_extend_height=True,
        )
        # A screen too low for both keeps the line that is typed.
        is_tall_enough = Condition(lambda: self._extent()[1] > _EDGES)
        return HSplit(
            [
                ConditionalContainer(self._text(self._above), is_tall_enough),
                VSplit([before, typed]),
                ConditionalContainer(self._text(self._below), is_tall_enough),
            ]
        )

    def key_bindings(self) -> KeyBindings:
        keys = KeyBindings()
        self.bind(keys)

        @keys.add("escape", eager=True)
        def _(event: KeyPressEvent) -> None:
            self.dismiss()

        @keys.add("c-c", eager=True)
        def _(event: KeyPressEvent) -> None:
            if not self.stop():
                self.dismiss()

        return keys

    def bind(self, keys: KeyBindings) -> None:
        """Add the keys of this panel."""

    def _all(self) -> Row:
        width, height = self._extent()
        available = max(1, height - _EDGES - len(self._gap(height)))
        rows = self.rows(width, available)[:available]
        if height > _EDGES:
            gap = self._gap(height)
            rows = [
                *gap,
                self._title(width),
                *rows,
                *([[]] if len(rows) < available else []),
                keys_row(self.keys(), width),
            ]
        return joined([fitted(row, width) for row in rows])

    def _above(self) -> Row:
        width, height = self._extent()
        gap = self._gap(height)
        available = max(0, height - _EDGES - 1 - len(gap))
        rows = self.rows(width, available)[:available]
        return joined([fitted(row, width) for row in (*gap, self._title(width), *rows)])

    def _below(self) -> Row:
        width, height = self._extent()
        whole = max(0, height - _EDGES - 1 - len(self._gap(height)))
        available = max(0, whole - len(self.rows(width, whole)))
        rows = self.rows_below(width, available)[:available]
        gap: list[Row] = [[]] if len(rows) < available else []
        return joined([fitted(row, width) for row in (*rows, *gap, keys_row(self.keys(), width))])

    @staticmethod
    def _gap(height: int) -> list[Row]:
        """An empty row between the panel and what stands above it, where there is room."""
        return [[]] if height > _ROOMY else []

    def _title(self, width: int) -> Row:
        badge = self.badge()
        return title_row(f"{self.title} · {badge}" if badge else self.title, width)

    @staticmethod
    def _text(content: Callable[[], Any], *, focusable: bool = False) -> Window:
        return Window(
            FormattedTextControl(content, focusable=focusable, show_cursor=False),
            dont_extend_height=True,
            always_hide_cursor=True,
        )

    def _extent(self) -> tuple[int, int]:
        """Columns, and the rows a panel may have."""
        size = get_app().output.get_size()
        left = max(1, size.rows // 4) if self.keeps_view else 1
        # In the last column some terminals wrap.
        return max(1, size.columns - 1), max(1, size.rows - left)

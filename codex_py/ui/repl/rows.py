"""Layout elements that are measured repeatedly within one drawing, and so cache the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text.base import OneStyleAndTextTuple
from prompt_toolkit.layout import Container, Dimension, HSplit, Window
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from codex_py.text.cells import cell_width
from codex_py.text.sanitize import sanitize_line

Row: TypeAlias = Sequence[OneStyleAndTextTuple]


class Rows(Container):
    """Rows that are drawn as they are; `rows` is asked once a drawing. Where they do not fit the last ones are seen.

    Each piece of one style is drawn and compared as one: letter by letter, a message that streams in would cost
    several times as much.
    """

    def __init__(self, rows: Callable[[], Sequence[Row]]) -> None:
        self._get_rows = rows
        self._rows: Sequence[Row] = ()
        self._drawing = -1

    def reset(self) -> None:
        pass

    def get_children(self) -> list[Container]:
        return []

    def preferred_width(self, max_available_width: int) -> Dimension:
        return Dimension()

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        height = len(self._now())
        return Dimension(max=height, preferred=height)

    def write_to_screen(
        self,
        screen: Screen,
        mouse_handlers: MouseHandlers,
        write_position: WritePosition,
        parent_style: str,
        erase_bg: bool,
        z_index: int | None,
    ) -> None:
        top, height = write_position.ypos, write_position.height
        rows = self._now()
        for y, row in enumerate(rows[max(0, len(rows) - height) :], top):
            screen.data_buffer[y].update(_cells(row, write_position.xpos))
        screen.height = max(screen.height, top + height)

    def _now(self) -> Sequence[Row]:
        if self._drawing != (drawing := get_app().render_counter):
            self._rows, self._drawing = self._get_rows(), drawing
        return self._rows


class _Measured(Container):
    """Its height is found once a drawing, when all of the screen is there to be had."""

    _height: tuple[tuple[int, int], Dimension] | None = None

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        wanted = (get_app().render_counter, width)
        if self._height is None or self._height[0] != wanted:
            self._height = (wanted, super().preferred_height(width, max_available_height))
        return self._height[1]


class Column(_Measured, HSplit):
    """Parts below one another."""


class Field(_Measured, Window):
    """A window to type in."""


class _Piece(Char):
    """Letters of one style, in the cell of the first of them."""

    def __init__(self, text: str, style: str, width: int) -> None:
        # Not the base's, which keeps the width of every text it has ever seen.
        self.char, self.style, self.width = text, style, width


# Stands in the other cells of a piece: it is like no letter, so that whatever comes there next is drawn.
_COVERED: Final = _Piece("", "[covered]", 1)


def _cells(row: Row, start: int) -> dict[int, Char]:
    heads: dict[int, Char] = {}
    x = start
    for style, text, *_ in row:
        if not text.isprintable():
            text = sanitize_line(text).replace("\t", " ")
        if width := cell_width(text):
            heads[x] = _Piece(text, style, width)
            x += width
    return {**dict.fromkeys(range(start, x), _COVERED), **heads}

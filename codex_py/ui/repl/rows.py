"""Parts of the layout that are asked again and again within one drawing, and so keep what they said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from prompt_toolkit.application.current import get_app
from prompt_toolkit.formatted_text.base import OneStyleAndTextTuple
from prompt_toolkit.layout import Dimension, HSplit, UIContent, UIControl
from prompt_toolkit.layout.controls import GetLinePrefixCallable

Row: TypeAlias = Sequence[OneStyleAndTextTuple]


class RowsControl(UIControl):
    """Rows that are drawn as they are; `rows` is asked once a drawing."""

    def __init__(self, rows: Callable[[], Sequence[Row]]) -> None:
        self._ask = rows
        self._rows: Sequence[Row] = ()
        self._drawing = -1

    def preferred_height(
        self, width: int, max_available_height: int, wrap_lines: bool, get_line_prefix: GetLinePrefixCallable | None
    ) -> int | None:
        return len(self._now())

    def create_content(self, width: int, height: int) -> UIContent:
        rows = self._now()
        return UIContent(lambda number: list(rows[number]), line_count=len(rows), show_cursor=False)

    def _now(self) -> Sequence[Row]:
        if self._drawing != (drawing := get_app().render_counter):
            self._rows, self._drawing = self._ask(), drawing
        return self._rows


class Column(HSplit):
    """Parts below one another, whose height is found once a drawing."""

    _height: tuple[tuple[int, int, int], Dimension] | None = None

    def preferred_height(self, width: int, max_available_height: int) -> Dimension:
        wanted = (get_app().render_counter, width, max_available_height)
        if self._height is None or self._height[0] != wanted:
            self._height = (wanted, super().preferred_height(width, max_available_height))
        return self._height[1]

"""Fits text and tables to a width: breaks lines where a language allows it, and narrows columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderResult
from rich.containers import Lines
from rich.text import Text

from codex_py.render.entry import Margin

_SCRIPT: Final = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\uffe0-\uffe6\U00020000-\U0003ffff]"
)
# Characters that may not begin a line in these scripts, and those that may not end one.
_CLOSING: Final = frozenset(
    "、。，．・：；！？）］｝」』】〉》〕〗”’…‥ーゝゞヽヾ々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.;:!?)]}'\"%"
)
_OPENING: Final = frozenset("（［｛「『【〈《〔〖“‘([{")


class WrappedProse(Text):
    """A text that is also wrapped between Chinese and Japanese characters; other text is wrapped as usual."""

    def wrap(
        self,
        console: Console,
        width: int,
        *,
        justify: JustifyMethod | None = None,
        overflow: OverflowMethod | None = None,
        tab_size: int = 8,
        no_wrap: bool | None = None,
    ) -> Lines:
        plain = self.plain
        if no_wrap or self.no_wrap or plain.isascii() or not _SCRIPT.search(plain):
            return super().wrap(console, width, justify=justify, overflow=overflow, tab_size=tab_size, no_wrap=no_wrap)
        broken = Text("\n").join(
            piece for line in self.split(allow_blank=True) for piece in line.divide(line_breaks(line.plain, width))
        )
        return broken.wrap(console, width, justify=justify, overflow=overflow, tab_size=tab_size)


def line_breaks(text: str, width: int) -> list[int]:
    """The positions at which to break a line so that no part, without trailing blanks, is wider than `width` cells."""
    breaks: list[int] = []
    used = 0
    positions = [0, *(at for at in range(1, len(text)) if _may_break(text[at - 1], text[at])), len(text)]
    for start, end in pairwise(positions):
        piece = text[start:end]
        word = piece.rstrip()
        blank = len(piece) - len(word)
        if used + cell_len(word) <= width:
            used += cell_len(word) + blank
            continue
        if start:
            breaks.append(start)
        # A character that is wider than the line is kept whole.
        *whole, last = chop_cells(word, max(2, width)) or [word]
        for part in whole:
            start += len(part)
            breaks.append(start)
        used = cell_len(last) + blank
    return breaks


def _may_break(before: str, after: str) -> bool:
    if before.isspace():
        return not after.isspace()
    if after.isspace() or after in _CLOSING or before in _OPENING or not cell_len(after):
        return False
    return bool(_SCRIPT.match(before) or _SCRIPT.match(after))


Alignment: TypeAlias = Literal["left", "center", "right"]

_BETWEEN: Final = "  "
_NARROWEST: Final = 6
# A wider column is read no better.
_WIDEST: Final = 60


class TextTable:
    """A table with a head; cells that are too long are wrapped."""

    def __init__(self, head: Sequence[Text], rows: Sequence[Sequence[Text]], alignments: Sequence[Alignment]) -> None:
        self._head = head
        self._rows = rows
        self._alignments = alignments

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is None:
            yield from self._stacked()
            return
        for line in self._lines(console, self._head, widths):
            line.stylize("table.head")
            yield line
        yield Text(_BETWEEN.join("─" * width for width in widths), "markdown.rule", no_wrap=True)
        for number, row in enumerate(self._rows):
            lines = list(self._lines(console, row, widths))
            yield from lines
            if len(lines) > 1 and number + 1 < len(self._rows):
                yield Text()

    def _widths(self, width: int) -> list[int] | None:
        """The width of each column; None when they do not fit side by side."""
        columns = range(len(self._head))
        natural = [min(_WIDEST, max(1, *(row[at].cell_len for row in (self._head, *self._rows)))) for at in columns]
        available = width - len(_BETWEEN) * (len(natural) - 1)
        if sum(natural) <= available:
            return natural
        minimum = [min(size, _NARROWEST) for size in natural]
        if sum(minimum) > available:
            return None
        return _shared(natural, minimum, available)

    def _lines(self, console: Console, row: Sequence[Text], widths: Sequence[int]) -> Iterator[Text]:
        cells = [
            [cell] if cell.cell_len <= width and "\n" not in cell.plain else list(cell.wrap(console, width))
            for cell, width in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, cells))):
            line = Text(no_wrap=True, overflow="crop")
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                part = cell[number].copy() if number < len(cell) else Text()
                part.rstrip()
                part.align(self._alignments[at], width)
                line.append_text(part).append(_BETWEEN if at + 1 < len(widths) else "")
            yield line

    def _stacked(self) -> RenderResult:
        for number, row in enumerate(self._rows):
            if number:
                yield Text()
            for title, cell in zip(self._head, row, strict=True):
                label = title.copy()
                label.stylize("table.head")
                yield label
                yield Margin(cell)


def _shared(natural: Sequence[int], minimum: Sequence[int], available: int) -> list[int]:
    """Column widths that fill the available cells; the widest columns shrink first."""
    low, high = 0, max(natural)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(_capped(natural, minimum, middle)) <= available:
            low = middle
        else:
            high = middle - 1
    widths = _capped(natural, minimum, low)
    spare = available - sum(widths)
    for at, (width, full) in enumerate(zip(widths, natural, strict=True)):
        if spare and width < full:
            widths[at] += 1
            spare -= 1
    return widths


def _capped(natural: Sequence[int], minimum: Sequence[int], limit: int) -> list[int]:
    return [max(floor, min(size, limit)) for size, floor in zip(natural, minimum, strict=True)]

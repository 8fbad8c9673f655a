"""Text of people's languages, broken into lines where those may be broken: Chinese and Japanese have no spaces."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.console import Console, JustifyMethod, OverflowMethod
from rich.containers import Lines
from rich.text import Text

_SCRIPT: Final = re.compile(
    r"[\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\uffe0-\uffe6\U00020000-\U0003ffff]"
)
# What may not begin a line there, and what may not end one.
_CLOSING: Final = frozenset(
    "、。，．・：；！？）］｝」』】〉》〕〗”’…‥ーゝゞヽヾ々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ,.;:!?)]}'\"%"
)
_OPENING: Final = frozenset("（［｛「『【〈《〔〖“‘([{")


class WrappedProse(Text):
    """A text that is wrapped between the signs of Chinese and Japanese too; any other is wrapped as ever."""

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
    """The positions at which one line of text is broken so that no part is wider than `width` cells, blanks at its end
    aside."""
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
        # A sign that is wider than the line is not broken.
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

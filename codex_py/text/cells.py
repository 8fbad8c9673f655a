"""How many cells of a terminal a text takes: wide characters two, combining ones none. Needs no library."""

from __future__ import annotations

from typing import Final
from unicodedata import category, east_asian_width

_JOINER: Final = "\u200d"
_AS_PICTURE: Final = "\ufe0f"


def cell_width(text: str) -> int:
    """The cells of a text without control characters."""
    return len(text) if text.isascii() else sum(_widths(text))


def cut_to_cells(text: str, width: int) -> str:
    """`text`, or as much of its beginning as fits with a `…` behind it; nothing when there is no cell."""
    if cell_width(text) <= width:
        return text
    length, width_left = 0, width - 1
    for size in _widths(text):
        width_left -= size
        if width_left < 0:
            break
        length += 1
    return text[:length] + "…" if width > 0 else ""


def _widths(text: str) -> list[int]:
    """The cells each character adds: a character that joins the one before, or follows a joiner, adds none."""
    widths: list[int] = []
    before = ""
    for char in text:
        if char == _AS_PICTURE and widths:
            widths.append(max(0, 2 - widths[-1]) if widths[-1] else 0)
        elif before == _JOINER or category(char) in ("Mn", "Me", "Cf"):
            widths.append(0)
        else:
            widths.append(2 if east_asian_width(char) in "WF" else 1)
        before = char
    return widths

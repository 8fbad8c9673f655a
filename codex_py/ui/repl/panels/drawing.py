"""Rows of a panel: text made harmless, cut and wrapped by the cells it takes.

Every text of a panel gets to the screen through `part`, `wrapped` or `fitted`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from prompt_toolkit.utils import get_cwidth

from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.ui.repl.panels.forms import TextLine

Part: TypeAlias = tuple[str, str]
Row: TypeAlias = list[Part]

# Of one text no more than this is drawn; how much is missing stands below it.
MAX_CHARACTERS: Final = 100_000
_TAB: Final = "    "
_SELECTED: Final = "class:menu.current"
_BULLET: Final = "• "


def part(text: str, style: str = "") -> Part:
    """A piece of a row in a style of the theme."""
    return (f"class:{style}" if style else "", sanitize_line(text).replace("\t", " "))


def cells(text: str) -> int:
    """How wide a harmless text is."""
    return len(text) if text.isascii() else sum(map(get_cwidth, text))


def fitted(row: Iterable[Part], width: int) -> Row:
    """The row cut to `width` cells, with an ellipsis where something is missing."""
    pieces = list(row)
    if sum(cells(text) for _, text in pieces) <= width:
        return pieces
    cut: Row = []
    available = width - 1
    for style, text in pieces:
        piece = _head(text, available)
        cut.append((style, piece))
        available -= cells(piece)
        if piece != text:
            # The end of a column is no reason for spaces before the ellipsis.
            cut[-1] = (style, piece.rstrip())
            break
    return [*cut, ("", "…")] if width > 0 else []


def highlighted(row: Iterable[Part], width: int) -> Row:
    """The row of the selected entry, in its style up to the end of the row."""
    pieces = fitted(row, width)
    missing = width - sum(cells(text) for _, text in pieces)
    return [*((_SELECTED, text) for _, text in pieces), (_SELECTED, " " * missing)]


def padded(text: str, width: int) -> str:
    """A sanitized text, cut or padded to exactly `width` cells."""
    shown = sanitize_line(text).replace("\t", " ")
    if cells(shown) > width:
        shown = _head(shown, width - 1) + "…" if width > 0 else ""
    return shown + " " * (width - cells(shown))


def wrapped(line: TextLine, width: int, indent: str = "  ") -> list[Row]:
    """The rows of a text, broken between words where there are any."""
    style = f"class:{line.style}" if line.style else ""
    rows = _lines(line.text, max(1, width - len(indent) - len(line.gutter)))
    margin = [("", indent), *([("class:menu.note", line.gutter)] if line.gutter else [])]
    return [[*margin, (style, piece)] for piece in rows]


def title_row(title: str, width: int) -> Row:
    """The upper edge of a panel."""
    head = fitted([("class:menu.note", "── "), part(title, "dialog.title"), ("", " ")], width)
    available = width - sum(cells(text) for _, text in head)
    return [*head, ("class:menu.note", "─" * max(0, available))]


def keys_row(keys: Sequence[tuple[str, str]], width: int) -> Row:
    """The lower edge: keys and what they do, as many as there is room for."""
    row: Row = [("", "  ")]
    used = 2
    for number, (key, action) in enumerate(keys):
        pieces = [
            ("class:menu.note", " · " if number else ""),
            part(key, "dialog.key"),
            part(f" {action}", "menu.note"),
        ]
        size = sum(cells(text) for _, text in pieces)
        if used + size > width:
            break
        row += pieces
        used += size
    return fitted(row, width)


def joined(rows: Sequence[Row]) -> Row:
    """Rows as the formatted text of one control."""
    text: Row = []
    for number, row in enumerate(rows):
        text += [*([("", "\n")] if number else []), *row]
    return text


def in_sight(count: int, chosen: int, height: int) -> range:
    """The indexes of a long list that are shown, the chosen one among them, with its neighbours where possible."""
    height = max(1, height)
    first = min(max(0, chosen - height // 2), max(0, count - height))
    return range(first, min(count, first + height))


def _head(text: str, width: int) -> str:
    """The longest beginning of a text that fits into `width` cells."""
    if text.isascii():
        return text[: max(0, width)]
    used = 0
    for index, letter in enumerate(text):
        used += get_cwidth(letter)
        if used > width:
            return text[:index]
    return text


# A panel is drawn again with every key.
@lru_cache(maxsize=256)
def _lines(text: str, width: int) -> tuple[str, ...]:
    harmless = sanitize(text[:MAX_CHARACTERS]).replace("\t", _TAB)
    if len(text) > MAX_CHARACTERS:
        harmless += f"\n({len(text) - MAX_CHARACTERS:,} more characters are not shown)"
    return tuple(piece for line in harmless.split("\n") for piece in _hung(line, width))


def _hung(text: str, width: int) -> Iterable[str]:
    """The pieces of one line; those of an item of a list stand behind its bullet."""
    if not text.startswith(_BULLET) or width < 2 * len(_BULLET):
        return _pieces(text, width)
    first, *rest = _pieces(text.removeprefix(_BULLET), width - len(_BULLET))
    return [_BULLET + first, *(" " * len(_BULLET) + piece for piece in rest)]


def _pieces(text: str, width: int) -> Iterable[str]:
    text = text.rstrip()
    while len(head := _head(text, width) or text[:1]) < len(text):
        space = head.rfind(" ")
        at_word = text[len(head)] == " "
        if not at_word and space > len(head) - len(head.lstrip()):
            head = head[:space]
        yield head.rstrip()
        text = text[len(head) :].lstrip()
    yield text

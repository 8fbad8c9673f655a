"""How a panel is drawn: rows of styled text, and the frame with its title, its keys and what is typed.

Every text of a panel gets to the screen through `part`, `wrapped` or `fitted`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, Generic, TypeAlias, TypeVar

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
from prompt_toolkit.utils import get_cwidth

from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.ui.repl.input import WordWrap
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

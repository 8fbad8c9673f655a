"""The layout: the live part, the input or the panel that replaces it, the menu and the status line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.base import OneStyleAndTextTuple
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Container,
    Dimension,
    DynamicContainer,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.mouse_handlers import MouseHandlers
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor
from prompt_toolkit.layout.screen import Char, Screen, WritePosition

from codex_py.text.display import cell_width
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.input import ChipStyle, Composer, WordWrap
from codex_py.ui.repl.panels.forms import Panels
from codex_py.ui.repl.screen import TerminalScreen
from codex_py.ui.repl.terminal import GAP_FROM, PLACEHOLDER, PROMPT, ROOMY_FROM

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


class LayoutParts(NamedTuple):
    """What is drawn round the input: for a width, the live part also for a greatest height."""

    live: Callable[[int, int], Sequence[Row]]
    has_live: Callable[[], bool]
    is_working: Callable[[], bool]
    queued: Callable[[int], StyleAndTextTuples]
    has_queued: Callable[[], bool]
    status: Callable[[int], StyleAndTextTuples]
    named: Callable[[int], StyleAndTextTuples]
    has_named: Callable[[], bool]


def build_layout(screen: TerminalScreen, composer: Composer, panels: Panels, parts: LayoutParts) -> Layout:
    """The whole of it. The input has the focus."""
    placeholder = ConditionalProcessor(
        AfterInput(lambda: PLACEHOLDER[: max(0, screen.width - 3)], style="class:menu.note"),
        Condition(lambda: not composer.text),
    )
    typed = Field(
        BufferControl(composer.buffer, input_processors=[ChipStyle(composer), WordWrap(len(PROMPT)), placeholder]),
        height=lambda: Dimension(min=1, max=max(1, screen.height // 2)),
        wrap_lines=True,
        dont_extend_height=True,
        get_line_prefix=lambda number, wrapped: _prefix(composer, number, wrapped, screen.width),
    )
    menu = ConditionalContainer(
        _text(lambda: composer.menu.fragments(screen.width, max(1, screen.height // 3))),
        Condition(lambda: composer.menu.is_shown and screen.height > 3),
    )
    queued = ConditionalContainer(
        _text(lambda: parts.queued(screen.width)),
        Condition(lambda: screen.height > 4 and parts.has_queued()),
    )
    gap = ConditionalContainer(Rows(lambda: [[]]), Condition(lambda: screen.height >= GAP_FROM))
    below = ConditionalContainer(
        _text(lambda: parts.status(screen.width)), Condition(lambda: screen.height > 1 and not composer.menu.is_shown)
    )
    above_status = ConditionalContainer(
        Rows(lambda: [[]]), Condition(lambda: screen.height >= ROOMY_FROM and not composer.menu.is_shown)
    )
    named = ConditionalContainer(
        _text(lambda: parts.named(screen.width)),
        Condition(lambda: screen.height > 4 and not composer.menu.is_shown and parts.has_named()),
    )
    entry = Column([queued, gap, typed, named, above_status, menu, below])

    def in_front() -> AnyContainer:
        return panels.open.container if panels.open else entry

    live = Rows(lambda: parts.live(screen.width, _live_height(screen, panels)))
    shown = Condition(lambda: screen.height > 4 and parts.has_live())
    rows = [ConditionalContainer(live, shown), DynamicContainer(in_front)]
    # On a screen too small for anything, nothing is better than a complaint.
    return Layout(Column(rows, window_too_small=Window()), focused_element=typed)


def _live_height(screen: TerminalScreen, panels: Panels) -> int:
    """An open panel leaves as many rows as it does not take: `Frame`."""
    return max(0, screen.height // 4 if panels.open else screen.height - 6)


def _prefix(composer: Composer, number: int, wrapped: int, width: int) -> StyleAndTextTuples:
    if width < 4:
        return []
    if number or wrapped:
        return [("", "  ")]
    if composer.menu.is_search:
        return [("class:warn", "⌕ ")]
    return [("class:warn" if composer.is_shell else "class:prompt.mark", PROMPT)]


def _text(content: Callable[[], StyleAndTextTuples]) -> Rows:
    return Rows(lambda: list(split_lines(content())))

"""The layout: the live part, the input or the panel that replaces it, the menu, the status line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.layout import (
    AnyContainer,
    BufferControl,
    ConditionalContainer,
    Dimension,
    DynamicContainer,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import AfterInput, ConditionalProcessor

from codex_py.ui.repl.input import ChipStyle, Composer
from codex_py.ui.repl.panel import Panels
from codex_py.ui.repl.rows import Column, Field, Row, Rows
from codex_py.ui.repl.screen import Screen

_PLACEHOLDER = "Ask anything · / commands · $ skills · @ files · ! shell · ? help"


class LayoutParts(NamedTuple):
    """What is drawn round the input: for a width, the live part also for a greatest height."""

    live: Callable[[int, int], Sequence[Row]]
    has_live: Callable[[], bool]
    is_working: Callable[[], bool]
    queued: Callable[[int], StyleAndTextTuples]
    has_queued: Callable[[], bool]
    status: Callable[[int], StyleAndTextTuples]


def build_layout(screen: Screen, composer: Composer, panels: Panels, parts: LayoutParts) -> Layout:
    """The whole of it. The input has the focus."""
    placeholder = ConditionalProcessor(
        AfterInput(lambda: _PLACEHOLDER[: max(0, screen.width - 3)], style="class:menu.note"),
        Condition(lambda: not composer.text),
    )
    typed = Field(
        BufferControl(composer.buffer, input_processors=[ChipStyle(composer), placeholder]),
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
    gap = ConditionalContainer(Rows(lambda: [[]]), Condition(lambda: screen.height > 6))
    below = ConditionalContainer(
        _text(lambda: parts.status(screen.width)), Condition(lambda: screen.height > 1 and not composer.menu.is_shown)
    )
    entry = Column([queued, gap, typed, menu, below])

    def in_front() -> AnyContainer:
        return panels.open.container if panels.open else entry

    live = Rows(lambda: parts.live(screen.width, _live_height(screen, panels)))
    shown = Condition(lambda: screen.height > 4 and parts.has_live())
    rows = [ConditionalContainer(live, shown), DynamicContainer(in_front)]
    # On a screen too small for anything, nothing is better than a complaint.
    return Layout(Column(rows, window_too_small=Window()), focused_element=typed)


def _live_height(screen: Screen, panels: Panels) -> int:
    """An open panel leaves fewer rows."""
    return max(0, screen.height // 3 if panels.open else screen.height - 6)


def _prefix(composer: Composer, number: int, wrapped: int, width: int) -> StyleAndTextTuples:
    if width < 4:
        return []
    if number or wrapped:
        return [("", "  ")]
    if composer.menu.is_search:
        return [("class:warn", "⌕ ")]
    return [("class:warn" if composer.is_shell else "class:prompt.mark", "› ")]


def _text(content: Callable[[], StyleAndTextTuples]) -> Rows:
    return Rows(lambda: list(split_lines(content())))

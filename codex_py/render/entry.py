"""The building blocks of what is drawn: an entry of the scrollback, a margin, a line that is cut, the gaps between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from codex_py.render.lines import to_lines
from codex_py.render.theme import Theme
from codex_py.text.sanitize import sanitize, sanitize_line

Spacing: TypeAlias = Literal["apart", "dense", "joined"]
# A margin is left out where too few cells would remain for words.
_MIN_WIDTH: Final = 8


class ScrollbackEntry:
    """Something for the scrollback, without blank lines at its edges.

    `dense` entries stand without a gap below one another; a `joined` one goes on with the entry before it.
    """

    def __init__(self, *renderables: RenderableType, spacing: Spacing = "apart") -> None:
        self.renderables: Final = renderables
        self.spacing: Final[Spacing] = spacing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self.renderables)


class Flow:
    """Entries one after the other, with the blank lines between them."""

    def __init__(self) -> None:
        self._last: Spacing | None = None

    def lines(self, entry: ScrollbackEntry, *, width: int, theme: Theme) -> list[str]:
        """The entry as lines, after a blank one where it needs that."""
        lines = to_lines(entry, width=width, theme=theme)
        return ["", *lines] if self.gap_before(entry) else lines

    def gap_before(self, entry: ScrollbackEntry) -> bool:
        """Whether a blank line belongs before the entry, which from now on is the last one."""
        before, self._last = self._last, entry.spacing
        return before is not None and entry.spacing != "joined" and (before, entry.spacing) != ("dense", "dense")


class Margin:
    """A body behind a margin: `first` before its first line, `rest` (as wide) before the others."""

    def __init__(self, body: RenderableType, first: str = "  ", rest: str = "  ", *, style: str = "none") -> None:
        self._body = body
        self._first = first
        self._rest = rest
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        available = options.max_width - max(cell_len(self._first), cell_len(self._rest))
        if available < _MIN_WIDTH:
            yield self._body
            return
        style = console.get_style(self._style)
        lines = console.render_lines(self._body, options.update(width=available, height=None), pad=False)
        for number, line in enumerate(lines):
            yield Segment(self._rest if number else self._first, style)
            yield from line
            yield Segment.line()


class OneLine:
    """A text that stays on one line: cut with a `…` so that the `note` behind it is still there.

    A long note is cut too, and leaves the text half of the line.
    """

    def __init__(self, text: Text, note: Text | None = None) -> None:
        self._text = text
        self._note = note or Text()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        text, note = self._text.copy(), self._note.copy()
        available = max(width - note.cell_len, width // 2)
        if available >= min(_MIN_WIDTH, text.cell_len):
            text.truncate(available, overflow="ellipsis")
            text.append_text(note)
        text.truncate(width, overflow="ellipsis")
        text.no_wrap = True
        yield text


def words(text: str, style: str = "") -> Text:
    """Text from outside, made harmless; its line ends stay."""
    return Text(sanitize(text), style)


def line_of(text: str, style: str = "") -> Text:
    """Text from outside, reduced to one line."""
    return Text(sanitize_line(" ".join(text.split())), style)


def stacked(renderables: Sequence[RenderableType]) -> RenderableType:
    """Renderables below one another."""
    return renderables[0] if len(renderables) == 1 else Group(*renderables)

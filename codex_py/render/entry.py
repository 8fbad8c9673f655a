"""What is drawn: scrollback entries and their building blocks, their links (OSC 8), and how they become lines."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import StringIO
from typing import Final, Literal, TypeAlias
from urllib.parse import quote
from zlib import crc32

from rich.cells import cell_len
from rich.color import Color, ColorSystem
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.text import Span, Text
from rich.theme import Theme as RichTheme

from codex_py.render.theme import ColorDepth, Theme, to_prompt_toolkit
from codex_py.text.sanitize import sanitize, sanitize_line

# A path has its line behind it, and perhaps a column: `src/app.py:12:3`.
_LINKED: Final = re.compile(
    r"(?P<url>https?://[!-;=?-~]{3,2000})|(?<![\w.~/:@+-])(?P<path>[\w./@+-]{1,400}):(?P<line>\d{1,7})(?::\d{1,5})?\b"
)
_PATH: Final = "path:"
# What a click would start in place of showing it: commands may write such files.
_STARTED: Final = (
    *(".desktop", ".command", ".tool", ".terminal", ".app", ".workflow", ".scpt", ".applescript", ".pkg", ".dmg"),
    *(".exe", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".wsf", ".hta", ".msi", ".reg", ".jar", ".appimage", ".run"),
    *(".html", ".htm", ".xhtml", ".svg", ".mht", ".url", ".webloc", ".lnk", ".inetloc", ".fileloc", ".pyw", ".ipynb"),
)
_CLOSING: Final = ".,;:!?'\"`*_]"


def link_spans(plain: str) -> Iterator[Span]:
    """The links in a text. A path is resolved when it is drawn, by `resolve_link`."""
    for found in _LINKED.finditer(plain):
        text = _without_closing(found[0])
        target = text if found["url"] else f"{_PATH}{found['line']}:{found['path']}"
        yield Span(found.start(), found.start() + len(text), Style(link=target))


def _without_closing(link: str) -> str:
    """The link without what ends the sentence or the brackets round it; `Foo_(bar)` keeps its own."""
    text = link.rstrip(_CLOSING)
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip(_CLOSING)
    return text


def with_links(text: Text) -> Text:
    """The text with its links."""
    text.spans[:0] = link_spans(text.plain)
    return text


def resolve_link(link: str, theme: Theme) -> str | None:
    """Where a link leads; None for what only looks like a path: relative ones count where there is such a file.

    Without an editor of the user's, None for what the system may start when it is opened.
    """
    if not link.startswith(_PATH):
        return link
    line, _, path = link.removeprefix(_PATH).partition(":")
    if not path.startswith("/"):
        path = os.path.normpath(os.path.join(theme.link_root, path))  # noqa: PTH118 - drawn often
        if not theme.link_root or not os.path.isfile(path):  # noqa: PTH113
            return None
    if theme.opener:
        return f"{theme.opener}://file{quote(path)}:{line}"
    return None if path.lower().endswith(_STARTED) or os.access(path, os.X_OK) else f"file://{quote(path)}"


_SYSTEMS: Final = {
    # Weight and slant are no colours.
    "none": ColorSystem.STANDARD,
    "16": ColorSystem.STANDARD,
    "256": ColorSystem.EIGHT_BIT,
    "truecolor": ColorSystem.TRUECOLOR,
}
# Text is sanitized before it gets here; these characters are replaced in case some is not.
_OBEYED: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HEIGHT: Final = 100
# The contrast that WCAG 2 level AA requires for text.
MIN_CONTRAST: Final = 4.5
_PLAIN: Final = Style.null()


def to_lines(renderable: RenderableType, *, width: int, theme: Theme) -> list[str]:
    """Lines of at most `width` cells, each with complete styles; trailing spaces are kept only on a background."""
    lines = (_linked(line, theme) for line in _laid_out(renderable, width, theme))
    return ["".join(_encoded(line, theme.depth)) for line in lines]


def to_fragments(renderable: RenderableType, *, width: int, theme: Theme) -> list[list[tuple[str, str]]]:
    """The same lines as formatted text of prompt_toolkit, which need not parse escape sequences then."""
    return [
        [(_prompt_toolkit_style(style), text) for text, style in _linked(line, None)]
        for line in _laid_out(renderable, width, theme)
    ]


def _laid_out(renderable: RenderableType, width: int, theme: Theme) -> list[list[tuple[str, Style]]]:
    console = _console(theme)
    options = console.options.update(width=max(1, width), height=None)
    fills = theme.depth in ("256", "truecolor")
    return [_without_end(line, fills=fills) for line in console.render_lines(renderable, options, pad=False)]


def _linked(line: list[tuple[str, Style]], theme: Theme | None) -> list[tuple[str, Style]]:
    """The same pieces with links that lead somewhere, and with none where the terminal opens none (`theme` None).

    Pieces that differ only in a link that is gone are one.
    """
    if not any(style.link for _, style in line):
        return line
    pieces: list[tuple[str, Style]] = []
    for text, style in line:
        if style.link:
            target = resolve_link(style.link, theme) if theme and theme.has_links else None
            style = style if target == style.link else style.update_link(target)
        if pieces and pieces[-1][1] == style:
            pieces[-1] = (pieces[-1][0] + text, style)
        else:
            pieces.append((text, style))
    return pieces


def _without_end(line: Iterable[Segment], *, fills: bool) -> list[tuple[str, Style]]:
    """The pieces of a line, joined by style, without trailing spaces except on a background."""
    segments: list[tuple[str, Style]] = []
    for segment in line:
        if not segment.text or segment.control:
            continue
        text, style = _OBEYED.sub("�", segment.text), segment.style or _PLAIN
        if text.isspace() and not (style.bgcolor or style.underline or style.reverse or style.strike):
            style = _PLAIN
        if segments and segments[-1][1] == style:
            segments[-1] = (segments[-1][0] + text, style)
        else:
            segments.append((text, style))
    while segments and not (fills and segments[-1][1].bgcolor is not None):
        text, style = segments.pop()
        if text := text.rstrip():
            return [*segments, (text, style)]
    return segments


def _encoded(line: Iterable[tuple[str, Style]], depth: ColorDepth) -> Iterable[str]:
    for text, style in line:
        codes = _escape_codes(style, depth)
        drawn = f"\x1b[{codes}m{text}\x1b[0m" if codes else text
        # The pieces of a wrapped link have the same id, so terminals treat them as one.
        yield f"\x1b]8;id={crc32(style.link.encode())};{style.link}\x1b\\{drawn}\x1b]8;;\x1b\\" if style.link else drawn


@lru_cache(maxsize=8)
def _console(theme: Theme) -> Console:
    return Console(
        file=StringIO(),
        force_terminal=True,
        color_system="256",
        theme=RichTheme(dict(theme.styles()), inherit=False),
        width=80,
        height=_HEIGHT,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )


@lru_cache(maxsize=1024)
def _escape_codes(style: Style, depth: ColorDepth) -> str:
    flags = (
        (style.bold, "1"),
        (style.dim, "2"),
        (style.italic, "3"),
        (style.underline, "4"),
        (style.reverse, "7"),
        (style.strike, "9"),
    )
    codes = [code for is_on, code in flags if is_on]
    if depth != "none":
        codes += _color_codes(style.color, depth, foreground=True)
        codes += _color_codes(style.bgcolor, depth, foreground=False)
    return ";".join(codes)


def _color_codes(color: Color | None, depth: ColorDepth, *, foreground: bool) -> tuple[str, ...]:
    if color is None or color.is_default:
        return ()
    # Sixteen colours have no quiet backgrounds, and a garish one is worse than none.
    if depth == "16" and not foreground and (color.number is None or color.number > 15):
        return ()
    return color.downgrade(_SYSTEMS[depth]).get_ansi_codes(foreground=foreground)


@lru_cache(maxsize=1024)
def _prompt_toolkit_style(style: Style) -> str:
    return to_prompt_toolkit(str(style))


Spacing: TypeAlias = Literal["apart", "dense", "joined"]
# A margin is left out where too few cells would remain for words.
_MIN_WIDTH: Final = 8


class ScrollbackEntry:
    """An entry of the scrollback, without blank lines at its edges.

    `dense` entries follow each other without a blank line; a `joined` entry continues the one before it.
    """

    def __init__(self, *renderables: RenderableType, spacing: Spacing = "apart") -> None:
        self.renderables: Final = renderables
        self.spacing: Final[Spacing] = spacing

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Group(*self.renderables)


class Flow:
    """Draws entries one after the other, with the blank lines between them."""

    def __init__(self) -> None:
        self._last: Spacing | None = None

    def lines(self, entry: ScrollbackEntry, *, width: int, theme: Theme) -> list[str]:
        """The lines of an entry, with a blank line before it if needed."""
        lines = to_lines(entry, width=width, theme=theme)
        return ["", *lines] if self.gap_before(entry) else lines

    def gap_before(self, entry: ScrollbackEntry) -> bool:
        """Whether a blank line precedes the entry; notes it as the last one."""
        before, self._last = self._last, entry.spacing
        return before is not None and entry.spacing != "joined" and (before, entry.spacing) != ("dense", "dense")


class Margin:
    """A body with a margin: `first` before its first line, `rest`, of the same width, before the others."""

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


@lru_cache(maxsize=512)
def readable_on(style: Style, background: Style) -> Style:
    """The style on a background, in the background's text colour if its own would be hard to read."""
    if background.bgcolor is None:
        return style
    if style.color is None or contrast(style.color, background.bgcolor) < MIN_CONTRAST:
        return style + background
    return style + Style(bgcolor=background.bgcolor)


def contrast(first: Color, second: Color) -> float:
    """The ratio of two colours by WCAG 2, from 1 to 21."""
    darker, lighter = sorted(map(_luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4
        for part in color.get_truecolor().normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Band:
    """A body on a background as wide as the terminal; without colours only the body."""

    def __init__(self, body: RenderableType, style: str) -> None:
        self._body = body
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        background = console.get_style(self._style)
        if background.bgcolor is None:
            yield self._body
            return
        for line in console.render_lines(self._body, options, pad=False):
            for segment in line:
                yield Segment(segment.text, readable_on(segment.style or _PLAIN, background))
            yield Segment(" " * (options.max_width - sum(segment.cell_length for segment in line)), background)
            yield Segment.line()


_SHORT_PIECE: Final = 20


class OneLine:
    """A text on one line, cut with a `…` so that the `note` after it stays visible.

    Of a long note the last pieces are left out, to leave half of the line for the text.
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
            text.append_text(_whole_pieces(note, width - text.cell_len))
        text.truncate(width, overflow="ellipsis")
        text.no_wrap = True
        yield text


def _whole_pieces(note: Text, width: int) -> Text:
    """The note without its last short pieces that do not fit: half a number would be another number."""
    while note.cell_len > width and (end := note.plain.rfind(" · ")) > 0 and len(note) - end <= _SHORT_PIECE:
        note = note[:end]
    return note


def words(text: str, style: str = "") -> Text:
    """Sanitized text with its line breaks."""
    return Text(sanitize(text), style)


def line_of(text: str, style: str = "") -> Text:
    """Sanitized text on one line."""
    return Text(sanitize_line(" ".join(text.split())), style)


def stacked(renderables: Sequence[RenderableType]) -> RenderableType:
    """Renderables below one another."""
    return renderables[0] if len(renderables) == 1 else Group(*renderables)

"""Renders finished Markdown. HTML is shown as text, links show their targets, nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.style import Style
from rich.text import Span, Text

from codex_py.render.code import CodeBlock, highlight, lexer_for
from codex_py.render.entry import Margin, link_spans, words
from codex_py.render.layout import Alignment, TextTable, WrappedProse
from codex_py.text.sanitize import sanitize

_DEEPEST: Final = 60
_WIDEST_RULE: Final = 60
_MAX_BRACKETS: Final = 256
_INLINE_STYLES: Final = {"strong": "strong", "em": "emphasis", "s": "markdown.strike", "link": "markdown.link"}
_TASKS: Final = {"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "}
_BULLETS: Final = ("• ", "◦ ", "▪ ")


def render_prose(source: str) -> list[RenderableType]:
    """The blocks of a piece of Markdown, with blank lines between them."""
    # Each bracket may begin a link, so the time to parse grows with the square of their number.
    tokens = _parser(with_links=source.count("[") <= _MAX_BRACKETS).parse(source)
    if any(token.level >= _DEEPEST for token in tokens):
        # Nested too deeply: shown as plain text.
        return [words(source)]
    return _with_gaps(list(_Blocks(tokens).read()))


class _Rule:
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text("─" * min(options.max_width, _WIDEST_RULE), "markdown.rule")


class _Blocks:
    """Turns tokens into renderables, from left to right."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def read(self, end: str = "") -> Iterator[RenderableType]:
        while self._at < len(self._tokens):
            token = self._next()
            if token.type == end:
                return
            yield from self._block(token)

    def _next(self) -> Token:
        self._at += 1
        return self._tokens[self._at - 1]

    def _block(self, token: Token) -> Iterator[RenderableType]:
        match token.type:
            case "inline":
                yield inline_text(token)
            case "heading_open":
                yield from self._heading(token)
            case "fence" | "code_block":
                lines = highlight(token.content.removesuffix("\n"), lexer_for(token.info))
                yield Margin(CodeBlock(lines))
            case "blockquote_open":
                body = _with_gaps(list(self.read("blockquote_close")))
                yield Margin(_Stack(body, "markdown.quote"), "│ ", "│ ", style="markdown.rule")
            case "bullet_list_open" | "ordered_list_open":
                yield _Stack(list(self._entries(token)))
            case "table_open":
                yield self._table()
            case "hr":
                yield _Rule()
            case _:
                pass

    def _heading(self, token: Token) -> Iterator[RenderableType]:
        for part in self.read("heading_close"):
            if isinstance(part, Text):
                part.stylize_before("markdown.heading")
                if token.tag == "h1":
                    part.stylize("underline")
            yield part

    def _entries(self, opened: Token) -> Iterator[RenderableType]:
        is_numbered = opened.type == "ordered_list_open"
        end = opened.type.replace("_open", "_close")
        number = int(opened.attrGet("start") or 1) if is_numbered else 0
        bullet = _BULLETS[min(self._depth, len(_BULLETS) - 1)]
        self._depth += 1
        while (token := self._next()).type != end:
            mark = f"{token.info or number}{token.markup} " if is_numbered else bullet
            number += 1
            yield self._entry(mark)
        self._depth -= 1

    def _entry(self, mark: str) -> RenderableType:
        renderables: list[RenderableType] = []
        for part in self.read("list_item_close"):
            # A list directly follows its paragraph; other blocks are separated by a blank line.
            if renderables and not isinstance(part, _Stack):
                renderables.append(Text())
            renderables.append(part)
        if renderables and isinstance(text := renderables[0], Text) and text.plain[:4] in _TASKS and mark in _BULLETS:
            mark = _TASKS[text.plain[:4]]
            renderables[0] = text[4:]
        return Margin(_Stack(renderables or [Text()]), mark, " " * len(mark), style="markdown.bullet")

    def _table(self) -> RenderableType:
        rows: list[list[Text]] = []
        alignments: list[Alignment] = []
        while (token := self._next()).type != "table_close":
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "th_open":
                alignments.append(_alignment(token))
            elif token.type == "inline":
                rows[-1].append(inline_text(token))
        return TextTable(rows[0], rows[1:], alignments)


class _Stack:
    """Blocks below one another, in a common style."""

    def __init__(self, renderables: Sequence[RenderableType], style: str = "none") -> None:
        self._renderables = renderables
        self._style = style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style(self._style)
        for part in self._renderables:
            for line in console.render_lines(part, options, style=style, pad=False, new_lines=True):
                yield from line


def inline_text(token: Token) -> Text:
    """The text of a paragraph, a heading or a cell, with its styles."""
    line = _Inline()
    links: list[tuple[str, int]] = []
    for child in token.children or ():
        name = child.type.removesuffix("_open").removesuffix("_close")
        if child.type.endswith("_open"):
            line.styles.insert(0, _INLINE_STYLES.get(name, "none"))
            if name == "link":
                links.append((str(child.attrGet("href") or ""), len(line.pieces)))
        elif child.type.endswith("_close"):
            line.styles.pop(0)
            if name == "link":
                _add_target(line, *links.pop())
        else:
            _add_leaf(line, child)
    plain = "".join(line.pieces)
    return WrappedProse(plain, spans=[*link_spans(plain), *line.spans])


class _Inline:
    """Collects sanitized pieces of text and their spans; several times faster than appending to a `Text`.

    `styles` are the current ones, the innermost first.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.spans: list[Span] = []
        self.styles: list[str] = []
        self._size = 0

    def add(self, text: str, style: str = "") -> None:
        """Add a piece in the current styles, which win over its own."""
        text = sanitize(text)
        end = self._size + len(text)
        for layer in (style, *self.styles) if style else self.styles:
            self.spans.append(Span(self._size, end, layer))
        self.pieces.append(text)
        self._size = end

    def link_from(self, start: int, target: str) -> None:
        """Let the pieces from this one on be a link."""
        self.spans.append(Span(sum(map(len, self.pieces[:start])), self._size, Style(link=target)))


def _add_leaf(line: _Inline, child: Token) -> None:
    match child.type:
        case "softbreak" | "hardbreak":
            line.add("\n")
        case "image":
            line.add("[image] ", "dim")
            line.add(child.content)
            _add_target(line, str(child.attrGet("src") or ""), len(line.pieces))
        case "code_inline":
            line.add(child.content, "markdown.code")
        case _:
            line.add(child.content)


def _add_target(line: _Inline, target: str, start: int) -> None:
    """Make the parts from `start` on a link, and say where it leads unless its own text does."""
    shown = sanitize(target)
    if shown.startswith(("http://", "https://")):
        line.link_from(start, shown)
    if shown and "".join(line.pieces[start:]) not in (shown, shown.removeprefix("mailto:")):
        line.add(f" ({target})", "dim")


def _alignment(token: Token) -> Alignment:
    style = str(token.attrGet("style") or "")
    return "right" if "right" in style else "center" if "center" in style else "left"


def _with_gaps(blocks: Sequence[RenderableType]) -> list[RenderableType]:
    return [part for block in blocks for part in (Text(), block)][1:]


@lru_cache(maxsize=2)
def _parser(*, with_links: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST + 20})
    # Link definitions stay visible, because the block that uses one may be parsed on its own.
    parser.enable(["table", "strikethrough"]).disable("reference")
    return parser if with_links else parser.disable(["link", "image"])

"""Markdown of the model, whole or as it streams in. Only the block that is still open is ever drawn again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.render.blocks import MAX_BLOCK_LENGTH, BlockCutter, CodeAdded, CodeBegun, CodeEnded, Piece, ProseBlock
from codex_py.render.code import CodeBlock, CodeLine, GrowingCode
from codex_py.render.entry import Margin, ScrollbackEntry, stacked
from codex_py.render.markdown_tokens import render_prose

MARK: Final = "● "
# Of an open block no more than this is drawn; what stands above comes with the finished block.
_OPEN_SHOWN: Final = 4096
_OPEN_LINES: Final = 40
# So many lines of code are done before they are given out together.
_CODE_AT_ONCE: Final = 12


class MarkdownStream:
    """Takes the deltas of one message, gives out its blocks.

    A block that goes on with the one before, such as the next entry of a list, is a `joined` entry. `mark` stands
    before the first line, and everything below is indented as far.
    """

    def __init__(self, mark: str = MARK, *, style: str = "message.mark") -> None:
        self._mark = mark
        self._style = style
        self._cutter = BlockCutter()
        self._line: list[str] = []
        self._line_size = 0
        self._code: GrowingCode | None = None
        self._code_gap = False
        self._begun = False
        self._drawn: tuple[str, ScrollbackEntry] | None = None

    def feed(self, delta: str) -> list[ScrollbackEntry]:
        """Take more of the message; the blocks that are finished by it, in order."""
        first, *rest = delta.split("\n")
        self._grow(first)
        done: list[ScrollbackEntry] = []
        for piece in rest:
            done += self._take_line()
            self._grow(piece)
        if self._line_size > MAX_BLOCK_LENGTH:
            done += self._take_line()
        return done

    def open_block(self) -> ScrollbackEntry | None:
        """The block that is not finished, as far as it is there; its end only when it is long."""
        line = "".join(self._line)
        if self._code is not None:
            return self._open_code(line)
        source = f"{self._cutter.open_end(_OPEN_SHOWN)}\n{line[-_OPEN_SHOWN:]}".strip("\n")
        if not source.strip():
            return None
        if self._drawn is None or self._drawn[0] != source:
            gap = self._begun and self._cutter.wants_gap
            self._drawn = (source, self._entry(render_prose(_closed(source)), gap=gap))
        return self._drawn[1]

    def finish(self) -> list[ScrollbackEntry]:
        """The message ends: what was open is finished too."""
        done = self._take_line() if self._line_size else []
        return [*done, *self._render_pieces(self._cutter.cut())]

    def _grow(self, piece: str) -> None:
        if piece:
            self._line.append(piece)
            self._line_size += len(piece)

    def _take_line(self) -> list[ScrollbackEntry]:
        line = "".join(self._line).removesuffix("\r")
        self._line, self._line_size = [], 0
        done = self._render_pieces(self._cutter.feed(line[:MAX_BLOCK_LENGTH]))
        for start in range(MAX_BLOCK_LENGTH, len(line), MAX_BLOCK_LENGTH):
            done += self._render_pieces(self._cutter.feed(line[start : start + MAX_BLOCK_LENGTH]))
        return done

    def _render_pieces(self, pieces: Sequence[Piece]) -> list[ScrollbackEntry]:
        return [entry for piece in pieces for entry in self._entries_of(piece)]

    def _entries_of(self, piece: Piece) -> Iterator[ScrollbackEntry]:
        match piece:
            case ProseBlock(source, gap):
                yield self._finished(render_prose(source), gap=gap)
            case CodeBegun(language, gap):
                self._code, self._code_gap = GrowingCode(language), gap
            case CodeAdded(line):
                if self._code is not None:
                    self._code.add(line)
                    if self._code.waiting >= _CODE_AT_ONCE:
                        yield from self._code_done(self._code.settled())
            case CodeEnded():
                if self._code is not None:
                    yield from self._code_done(self._code.lines())
                self._code = None

    def _code_done(self, lines: list[CodeLine]) -> Iterator[ScrollbackEntry]:
        if lines:
            yield self._finished([Margin(CodeBlock(lines))], gap=self._code_gap)
            self._code_gap = False

    def _open_code(self, line: str) -> ScrollbackEntry | None:
        lines = self._code.lines()[-_OPEN_LINES:] if self._code is not None else []
        unfinished = GrowingCode("")
        unfinished.add(line[-_OPEN_SHOWN:])
        shown = [*lines, *unfinished.lines()] if line.strip("`~ ") else lines
        return self._entry([Margin(CodeBlock(shown))], gap=self._begun and self._code_gap) if shown else None

    def _finished(self, renderables: Sequence[RenderableType], *, gap: bool) -> ScrollbackEntry:
        entry = self._entry(renderables, gap=gap and self._begun)
        self._begun = True
        return entry

    def _entry(self, renderables: Sequence[RenderableType], *, gap: bool) -> ScrollbackEntry:
        indent = " " * len(self._mark)
        body = Margin(stacked(renderables), indent if self._begun else self._mark, indent, style=self._style)
        return ScrollbackEntry(body, spacing="apart" if gap or not self._begun else "joined")


def render_markdown(source: str, mark: str = MARK, *, style: str = "message.mark") -> ScrollbackEntry | None:
    """A whole message; None when it is empty."""
    stream = MarkdownStream(mark, style=style)
    blocks = [*stream.feed(source), *stream.finish()]
    renderables = [part for block in blocks for part in ([Text(), block] if block.spacing == "apart" else [block])]
    return ScrollbackEntry(*renderables[1:]) if renderables else None


def _closed(source: str) -> str:
    """The source with the marks closed that the next words will close, so that they do not flicker."""
    if source.count("`") % 2:
        return source + "`"
    return source + "**" if source.count("**") % 2 and not source.endswith("*") else source

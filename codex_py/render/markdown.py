"""Draws Markdown of the model, whole or while it streams, in blocks: only the open block is redrawn.

A block is a paragraph, a heading, a table, a list entry, or lines of code. Its end follows from its first lines and
the line after it, so each line is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from codex_py.render.code import CodeBlock, CodeLine, GrowingCode
from codex_py.render.entry import Margin, ScrollbackEntry, stacked
from codex_py.render.markdown_tokens import render_prose

# Longer paragraphs are cut, so that the work for one block is bounded.
MAX_BLOCK_LENGTH: Final = 8 * 1024
_MAX_TABLE_LENGTH: Final = 64 * 1024
_FENCE: Final = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_ENTRY: Final = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)")
_RULE: Final = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
_INTERRUPTING: Final = ("-", "*", "+", "1.", "1)")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(\s|$)")


class ProseBlock(NamedTuple):
    """The source of a finished block; `gap` says whether a blank line precedes it."""

    source: str
    gap: bool


class CodeBegun(NamedTuple):
    language: str
    gap: bool


class CodeAdded(NamedTuple):
    line: str


class CodeEnded(NamedTuple):
    pass


Piece: TypeAlias = ProseBlock | CodeBegun | CodeAdded | CodeEnded


class _Fence(NamedTuple):
    indent: int
    mark: str

    def is_closed_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.mark) and not bare.strip(self.mark[0]) and len(line) - len(line.lstrip()) <= 3


class BlockCutter:
    """Splits lines into blocks, and shows the block that has not ended."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._fence: _Fence | None = None
        self._entry: int | None = None
        self._blanks = 0
        self._dense = False

    def open_end(self, max_length: int) -> str:
        """About the last `max_length` characters of the open block; a table keeps its head."""
        head = self._lines[:2] if self._is_table else []
        lines: list[str] = []
        for line in reversed(self._lines[len(head) :]):
            max_length -= len(line) + 1
            if max_length < 0:
                break
            lines.append(line)
        return "\n".join([*head, *reversed(lines)])

    @property
    def wants_gap(self) -> bool:
        """Whether a blank line precedes the open block."""
        return not self._dense

    def feed(self, line: str) -> list[Piece]:
        """Take the next line, without its newline; gives back the pieces that it finishes."""
        if self._fence is not None:
            return self._code(line)
        if not line.strip():
            return self._blank()
        if self._entry is not None and not self._leaves_entry(line):
            for _ in range(self._blanks):
                self._append("")
            return self._add_to_block(line)
        return self._outside_entry(line)

    def cut(self) -> list[Piece]:
        """End the open block here."""
        if self._fence is not None:
            self._fence = None
            return [CodeEnded()]
        return self._finished()

    def _outside_entry(self, line: str) -> list[Piece]:
        fence, entry = _FENCE.match(line), _ENTRY.match(line)
        if fence and not ("`" in fence[3] and fence[2][0] == "`"):
            pieces = self._finished()
            self._dense = False
            self._fence = _Fence(len(fence[1]), fence[2])
            return [*pieces, CodeBegun(fence[3].strip(), True)]
        if entry and self._begins_entry(entry, line):
            dense = self._entry is not None and not self._blanks
            pieces = self._finished()
            self._dense, self._entry = dense, len(entry[0]) if entry[3] else len(entry[0]) + 1
            return [*pieces, *self._add_to_block(line)]
        if self._entry is not None or _HEADING.match(line):
            pieces = self._finished()
            self._dense = False
            pieces += self._add_to_block(line)
            return pieces + self._finished() if _HEADING.match(line) else pieces
        return self._add_to_block(line)

    def _begins_entry(self, entry: re.Match[str], line: str) -> bool:
        """Whether a line begins a list entry. Within a paragraph only a first number or a bullet does; a rule never."""
        if _RULE.fullmatch(line):
            return False
        in_paragraph = bool(self._lines) and self._entry is None
        return not in_paragraph or (entry.end() < len(line) and entry[2] in _INTERRUPTING)

    def _leaves_entry(self, line: str) -> bool:
        """Whether a non-blank line is outside of the open list entry."""
        indent = len(line) - len(line.lstrip(" "))
        if line.startswith("\t") or indent >= min(self._entry or 0, 4) or (indent >= 2 and not _ENTRY.match(line)):
            return False
        if self._blanks or _ENTRY.match(line) or _HEADING.match(line):
            return True
        return _FENCE.match(line) is not None

    def _blank(self) -> list[Piece]:
        if self._entry is not None:
            self._blanks += 1
            return []
        return self._finished()

    def _code(self, line: str) -> list[Piece]:
        fence = self._fence
        if fence is None or fence.is_closed_by(line):
            self._fence = None
            return [CodeEnded()]
        spaces = len(line) - len(line.lstrip(" "))
        return [CodeAdded(line[min(fence.indent, spaces) :])]

    def _add_to_block(self, line: str) -> list[Piece]:
        self._append(line)
        self._blanks = 0
        if self._size <= (_MAX_TABLE_LENGTH if self._is_table else MAX_BLOCK_LENGTH):
            return []
        head = self._lines[:2] if self._is_table else []
        pieces = self.cut()
        for head_line in head:
            self._append(head_line)
        return pieces

    @property
    def _is_table(self) -> bool:
        return len(self._lines) > 1 and "|" in self._lines[0] and _TABLE_RULE.fullmatch(self._lines[1]) is not None

    def _append(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1

    def _finished(self) -> list[Piece]:
        source, gap = "\n".join(self._lines), not self._dense
        self._lines, self._size = [], 0
        self._entry, self._blanks, self._dense = None, 0, False
        return [ProseBlock(source, gap)] if source else []


MARK: Final = "● "
# The end of an open block that is drawn; the rest is drawn with the finished block.
_OPEN_SHOWN: Final = 4096
_OPEN_LINES: Final = 40
# Lines of code are drawn for good in groups of this size.
_CODE_AT_ONCE: Final = 12


class MarkdownStream:
    """Draws one message from its deltas, block by block.

    A block that continues the one before, such as the next list entry, is a `joined` entry. `mark` precedes the first
    line, and everything below is indented by its width.
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

    @property
    def is_inside_code(self) -> bool:
        """Whether a code block is open."""
        return self._code is not None

    def feed(self, delta: str) -> list[ScrollbackEntry]:
        """Take more of the message; gives back the blocks that it finishes, in order."""
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
        """The unfinished block; only its end if it is long."""
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
        """End the message; gives back the open block."""
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
    """The source with open emphasis and code marks closed, so that they do not flicker while streaming."""
    if source.count("`") % 2:
        return source + "`"
    return source + "**" if source.count("**") % 2 and not source.endswith("*") else source

"""Cutting a Markdown text that is still coming into blocks: what is finished, and what may change yet.

A block is a paragraph, a heading, a table, one entry of a list, or lines of code. Where it ends is told by its first
lines and by the line after it, so each line is looked at once.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

# More than this is no paragraph: it is cut, so that the work for one block is bounded.
MAX_BLOCK_LENGTH: Final = 8 * 1024
_MAX_TABLE_LENGTH: Final = 64 * 1024
_FENCE: Final = re.compile(r"( {0,3})(`{3,}|~{3,})(.*)")
_ENTRY: Final = re.compile(r"( {0,3})([-*+]|\d{1,9}[.)])(\s+|$)")
_RULE: Final = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
_INTERRUPTING: Final = ("-", "*", "+", "1.", "1)")
_TABLE_RULE: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_HEADING: Final = re.compile(r" {0,3}#{1,6}(\s|$)")


class ProseBlock(NamedTuple):
    """The source of a finished block. `gap` says that a blank line belongs before it."""

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
    """Takes lines, gives out pieces, and shows the block that has not ended."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._size = 0
        self._fence: _Fence | None = None
        self._entry: int | None = None
        self._blanks = 0
        self._dense = False

    def open_end(self, max_length: int) -> str:
        """The open block by its last `max_length` characters or so; a table keeps its head."""
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
        """Whether the open block stands apart from the one before."""
        return not self._dense

    def feed(self, line: str) -> list[Piece]:
        """Take the next line, without its end; the pieces that it finishes."""
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
        """End the open block here, wherever that is."""
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
        """A number in the middle of a paragraph begins a list only when it is the first one; a rule is none."""
        if _RULE.fullmatch(line):
            return False
        in_paragraph = bool(self._lines) and self._entry is None
        return not in_paragraph or (entry.end() < len(line) and entry[2] in _INTERRUPTING)

    def _leaves_entry(self, line: str) -> bool:
        """Whether a line that is not blank stands outside of the open entry of a list."""
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

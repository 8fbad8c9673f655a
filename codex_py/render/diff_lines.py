"""The lines of a diff: number, sign, and the text in the colours of its language, on a background for the sign."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from codex_py.render.code import CodeLine, clean_line, fold, highlight, lexer_for_file

# Nobody reads on in a line that is longer.
_MAX_LENGTH: Final = 2000
_BACKGROUNDS: Final = {"+": "diff.add.ground", "-": "diff.remove.ground"}
_SIGNS: Final = {"+": "diff.add", "-": "diff.remove"}


class DiffRow(NamedTuple):
    """A line with its number in the file, the old one for what is removed, 0 for none; `~` is a gap or a remark."""

    sign: Literal["+", "-", " ", "~"]
    number: int
    text: str


class DiffLines:
    """Rows of one file, whose name gives the language."""

    def __init__(self, rows: Sequence[DiffRow], file_name: str) -> None:
        self._rows = _without_returns(rows)
        self._lines = list(_coloured(self._rows, file_name))
        self._digits = len(str(max((row.number for row in rows), default=0) or ""))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        before = self._digits + 3 if self._digits else 2
        available = max(1, options.max_width - before)
        fill = min(available, max((_cells(line) for line in self._lines), default=0))
        for row, line in zip(self._rows, self._lines, strict=True):
            yield from self._row(console, row, line, available=available, fill=fill)

    def _row(self, console: Console, row: DiffRow, line: CodeLine, *, available: int, fill: int) -> Iterator[Segment]:
        background = console.get_style(_BACKGROUNDS.get(row.sign, "none"))
        sign = console.get_style(_SIGNS.get(row.sign, "none"))
        segments = [Segment(text, console.get_style(style) + background) for text, style in line]
        for at, part in enumerate(fold(segments, available)):
            shown = str(row.number) if row.number and not at else ""
            if self._digits:
                yield Segment(f"{shown:>{self._digits}} ", console.get_style("diff.number"))
            yield Segment(f"{row.sign if row.sign in _SIGNS and not at else ' '} ", sign + background)
            yield from part
            if row.sign in _SIGNS:
                yield Segment(" " * (fill - sum(segment.cell_length for segment in part)), background)
            yield Segment.line()


def _without_returns(rows: Sequence[DiffRow]) -> Sequence[DiffRow]:
    """The rows without the `\\r` at their ends, when all have one: it matters only where it is not everywhere."""
    if all(row.text.endswith("\r") for row in rows if row.sign != "~"):
        return [row._replace(text=row.text.removesuffix("\r")) for row in rows]
    return rows


def _coloured(rows: Sequence[DiffRow], file_name: str) -> Iterator[CodeLine]:
    """The text of each row. What was and what is now are two texts, each read in its order."""
    lexer = lexer_for_file(file_name)
    old = iter(highlight("\n".join(row.text[:_MAX_LENGTH] for row in rows if row.sign == "-"), lexer))
    new = iter(highlight("\n".join(row.text[:_MAX_LENGTH] for row in rows if row.sign in "+ "), lexer))
    for row in rows:
        if row.sign == "~":
            yield ((clean_line(row.text[:_MAX_LENGTH]), "diff.hunk"),)
        else:
            yield next(old if row.sign == "-" else new)


def _cells(line: CodeLine) -> int:
    return sum(Segment(text).cell_length for text, _ in line)

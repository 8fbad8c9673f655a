"""Highlights source code, lexed in pieces of bounded size, so that no input can make it slow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from pygments.lexer import Lexer
from pygments.lexers import find_lexer_class_by_name, find_lexer_class_for_filename
from pygments.util import ClassNotFound
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment

from codex_py.text.sanitize import sanitize, sanitize_line

Run: TypeAlias = tuple[str, str]
"""A piece of a line and the name of its style."""
CodeLine: TypeAlias = tuple[Run, ...]

_TAB: Final = 4
_PIECE: Final = 4096
_MAX_LINE_LENGTH: Final = 500
# Token types, the most specific first.
_STYLES: Final = (
    ("Comment", "code.comment"),
    ("Keyword.Type", "code.type"),
    ("Keyword", "code.keyword"),
    ("Name.Function", "code.name"),
    ("Name.Class", "code.type"),
    ("Name.Tag", "code.keyword"),
    ("Name.Attribute", "code.name"),
    ("Name.Decorator", "code.name"),
    ("Name.Builtin", "code.type"),
    ("Name.Exception", "code.type"),
    ("Literal.String", "code.string"),
    ("Literal", "code.number"),
    ("Operator.Word", "code.keyword"),
    ("Operator", "code.operator"),
    ("Generic.Inserted", "code.add"),
    ("Generic.Deleted", "code.remove"),
    ("Generic.Heading", "strong"),
    ("Generic.Subheading", "code.comment"),
)
_GOES_ON: Final = ("Token.Literal", "Token.Comment")
_ENDS_WITH_ITS_LINE: Final = "Token.Comment.Single"
# Languages with others embedded in them: a part cannot be lexed without its surroundings.
_EMBEDDING: Final = frozenset({"HTML", "PHP", "Vue", "Svelte", "Markdown", "ERB", "HTML+Jinja"})


class CodeBlock:
    """Highlighted lines of code; long lines are wrapped."""

    def __init__(self, lines: Sequence[CodeLine]) -> None:
        self.lines: Final = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self.lines:
            segments = [Segment(text, console.get_style(style)) for text, style in line]
            for row in fold(segments, options.max_width):
                yield from row
                yield Segment.line()


class GrowingCode:
    """Code that streams in line by line. Lines whose highlighting cannot change any more are `settled`."""

    def __init__(self, language: str) -> None:
        self._lexer = lexer_for(language)
        self._open: list[str] = []
        self._open_size = 0
        self._waited = 0
        self._safe = 0
        self._lexed: list[CodeLine] | None = None

    def add(self, line: str) -> None:
        """Add the next line, without its newline."""
        self._open.append(clean_line(line))
        self._open_size += len(line) + 1
        self._waited += 1
        self._lexed = None

    @property
    def waiting(self) -> int:
        """How many lines were added since the last call of `settled`."""
        return self._waited

    def settled(self) -> list[CodeLine]:
        """Remove and give back the lines that are final."""
        lines = self.lines()
        count = len(lines) if self._open_size > _PIECE else self._safe
        self._waited = self._safe = 0
        done, self._lexed = lines[:count], lines[count:]
        self._open = self._open[count:]
        self._open_size = sum(len(line) + 1 for line in self._open)
        return done

    def lines(self) -> list[CodeLine]:
        """The lines that `settled` has not removed."""
        if self._lexed is None:
            self._lexed, self._safe = _lexed(self._open, self._lexer)
        return self._lexed


def lexer_for(language: str) -> Lexer | None:
    """The lexer for the language of a code fence; None for none, and for an unknown one."""
    name = language.strip().partition(" ")[0].partition(",")[0].strip("{}.").lower()
    if not name or len(name) > 40:
        return None
    try:
        return find_lexer_class_by_name(name)(stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def lexer_for_file(name: str) -> Lexer | None:
    """The lexer for a file of this name."""
    found = find_lexer_class_for_filename(name[-200:])
    return found(stripnl=False, ensurenl=False) if found else None


def highlight(source: str, lexer: Lexer | None) -> list[CodeLine]:
    """The lines of a text, sanitized and highlighted."""
    lines = [clean_line(line) for line in source.split("\n")]
    coloured: list[CodeLine] = []
    for piece in _pieces(lines):
        coloured += _lexed(piece, lexer)[0]
    return coloured


def fold(segments: Sequence[Segment], width: int) -> Iterator[list[Segment]]:
    """A line as rows of at most `width` cells."""
    row: list[Segment] = []
    available = width
    for segment in segments:
        rest = segment
        while rest.cell_length > available:
            head, rest = rest.split_cells(available)
            yield [*row, head]
            row, available = [], width
        row.append(rest)
        available -= rest.cell_length
    yield row


def clean_line(line: str) -> str:
    """A sanitized line of code without tabs."""
    return sanitize_line(sanitize(line).expandtabs(_TAB))


def _pieces(lines: Sequence[str]) -> Iterator[list[str]]:
    piece: list[str] = []
    size = 0
    for line in lines:
        if piece and size + len(line) > _PIECE:
            yield piece
            piece, size = [], 0
        piece.append(line)
        size += len(line) + 1
    yield piece


def _lexed(lines: Sequence[str], lexer: Lexer | None) -> tuple[list[CodeLine], int]:
    """The highlighted lines, and how many precede the last position where the lexer may restart."""
    if lexer is None or any(len(line) > _MAX_LINE_LENGTH for line in lines):
        return [((line, "none"),) if line else () for line in lines], len(lines)
    rows: list[list[Run]] = [[]]
    safe = 0
    # The last line gets its newline, to see whether the next line can be lexed on its own.
    for token_type, text in lexer.get_tokens("\n".join([*lines, ""])):
        style = _style_of(str(token_type))
        first, *rest = text.split("\n")
        _append(rows[-1], first, style)
        for part in rest:
            rows.append([])
            _append(rows[-1], part, style)
        if rest and not rest[-1] and not _goes_on(str(token_type)):
            safe = len(rows) - 1
    rows += [[] for _ in range(len(lines) - len(rows))]
    return [tuple(row) for row in rows[: len(lines)]], 0 if lexer.name in _EMBEDDING else min(safe, len(lines))


def _append(row: list[Run], text: str, style: str) -> None:
    if text:
        row.append((text, style))


@lru_cache(maxsize=512)
def _style_of(token_type: str) -> str:
    name = token_type.removeprefix("Token.") + "."
    return next((style for known, style in _STYLES if name.startswith(known + ".")), "none")


def _goes_on(token_type: str) -> bool:
    """Whether a token of this type can continue on the next line."""
    return token_type.startswith(_GOES_ON) and token_type != _ENDS_WITH_ITS_LINE

"""Draws a patch as highlighted diffs with line numbers, file by file; long ones are cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

from codex_py.protocol.questions import ApprovalQuestion, FileChange
from codex_py.render.code import CodeLine, clean_line, fold, highlight, lexer_for_file
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, readable_on, words
from codex_py.render.status import relative_path
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.text.display import counted

# Longer lines are cut.
_MAX_LENGTH: Final = 2000
_BACKGROUNDS: Final = {"+": "diff.add.ground", "-": "diff.remove.ground"}
_SIGNS: Final = {"+": "diff.add", "-": "diff.remove"}


class DiffRow(NamedTuple):
    """A line of a diff and its number in the file, the old one if it is removed, 0 for none; `~` is a gap or note."""

    sign: Literal["+", "-", " ", "~"]
    number: int
    text: str


class DiffLines:
    """Draws the rows of one file, highlighted by its name."""

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
        sign = readable_on(console.get_style(_SIGNS.get(row.sign, "none")), background)
        segments = [Segment(text, readable_on(console.get_style(style), background)) for text, style in line]
        for at, part in enumerate(fold(segments, available)):
            shown = str(row.number) if row.number and not at else ""
            if self._digits:
                yield Segment(f"{shown:>{self._digits}} ", console.get_style("diff.number"))
            yield Segment(f"{row.sign if row.sign in _SIGNS and not at else ' '} ", sign)
            yield from part
            if row.sign in _SIGNS:
                yield Segment(" " * (fill - sum(segment.cell_length for segment in part)), background)
            yield Segment.line()


def _without_returns(rows: Sequence[DiffRow]) -> Sequence[DiffRow]:
    """The rows without a trailing `\\r` if all have one: it is only worth showing if some do not."""
    if all(row.text.endswith("\r") for row in rows if row.sign != "~"):
        return [row._replace(text=row.text.removesuffix("\r")) for row in rows]
    return rows


def _coloured(rows: Sequence[DiffRow], file_name: str) -> Iterator[CodeLine]:
    """The highlighted text of each row. The old and the new text are lexed separately."""
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


FileChangeType: TypeAlias = Literal["add", "delete", "update"]

_FOLDED_LINES: Final = 60
_EXPANDED_LINES: Final = 2000
# Every file shows some rows, so that none is overlooked.
_MIN_LINES: Final = 3
_REASON_SHOWN: Final = 4000
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")
_VERBS: Final = {"add": "Added", "delete": "Deleted", "update": "Edited"}


class FileDiff(NamedTuple):
    """The change of one file; `moved_to` is empty if it is not moved."""

    change_type: FileChangeType
    path: str
    rows: Sequence[DiffRow]
    moved_to: str = ""


def render_changes(
    changes: Sequence[FileChange], *, ok: bool = True, output: str = "", expanded: bool = False, cwd: Path | None = None
) -> ScrollbackEntry:
    """The files of a patch; paths below `cwd` are relative to it. `output` says why a failed one failed."""
    files = _files_of(changes, cwd)
    head = _headline(files, is_ok=ok)
    if not ok:
        reason = output.strip()[:_REASON_SHOWN]
        return ScrollbackEntry(head, *([Margin(words(reason, "output"))] if reason else []))
    return ScrollbackEntry(head, *_render_files(files, named=len(files) > 1, expanded=expanded))


def render_difference(
    title: str, changes: Sequence[FileChange], *, expanded: bool = False, cwd: Path | None = None
) -> ScrollbackEntry:
    """The differences from the state that the title names, file by file."""
    files = _files_of(changes, cwd)
    count = f" · {counted(len(files), 'file')}"
    counts = _counts(files)
    head = OneLine(Text.assemble((title, "strong"), (count, "dim"), " ", counts[2:]))
    return ScrollbackEntry(head, *_render_files(files, named=True, expanded=expanded))


def _files_of(changes: Sequence[FileChange], cwd: Path | None) -> list[FileDiff]:
    return [
        FileDiff(
            change.kind,
            relative_path(change.path, cwd),
            read_diff(change.diff),
            relative_path(change.move_path, cwd) if change.move_path else "",
        )
        for change in changes
    ]


def render_proposal(question: ApprovalQuestion, max_rows: int | None = None) -> ScrollbackEntry:
    """A proposed patch, file by file, for its approval question.

    With `max_rows` each file has its share of them, from its first change on, in rows that need not be wrapped.
    """
    renderables: list[RenderableType] = []
    files = _files_of(question.changes or changes_in_patch(question.command, question.cwd), question.cwd)
    shares = [_EXPANDED_LINES] * len(files)
    if max_rows is not None:
        shares = fair_shares([len(file.rows) for file in files], max(0, max_rows - len(files)))
    for file, share in zip(files, shares, strict=True):
        verb = {"add": "Add", "delete": "Delete", "update": "Edit"}[file.change_type]
        renderables.append(OneLine(Text.assemble((f"{verb} ", "strong"), _path(file)), _counts([file])))
        if shown := _folded(file.rows, share) if max_rows is not None else file.rows[:share]:
            renderables.append(DiffLines(shown, file.moved_to or file.path))
        if max_rows is None and (left := len(file.rows) - share) > 0:
            renderables.append(Text(f"… {left} more lines", "dim"))
    return ScrollbackEntry(*renderables)


def render_unreadable_patch(patch: str) -> ScrollbackEntry:
    """A call with an invalid patch."""
    headline = Text.assemble(("✗ ", "bad"), "A patch that cannot be read")
    return ScrollbackEntry(headline, Margin(words(patch[:_REASON_SHOWN].expandtabs(4), "output")))


def read_diff(diff: str) -> list[DiffRow]:
    """The rows of a unified diff without its file headers; hunks without line numbers have rows without them."""
    rows: list[DiffRow] = []
    old = new = step = 0
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n"):
        if hunk := _HUNK.match(line):
            old, new, step = int(hunk[1]), int(hunk[2]), 1
            rows += [DiffRow("~", 0, "⋯")] if in_hunk else []
            in_hunk = True
        elif line.startswith("@@"):
            location = line.removeprefix("@@").strip()
            rows += [DiffRow("~", 0, location or "⋯")] if in_hunk or location else []
            old, new, step, in_hunk = 0, 0, 0, True
        elif not in_hunk:
            continue
        elif line.startswith("+"):
            rows.append(DiffRow("+", new, line[1:]))
            new += step
        elif line.startswith("-"):
            rows.append(DiffRow("-", old, line[1:]))
            old += step
        elif line.startswith(" ") or not line:
            rows.append(DiffRow(" ", new, line[1:]))
            old, new = old + step, new + step
        else:
            rows.append(DiffRow("~", 0, line.removeprefix("\\ ")))
    return rows


def _render_files(files: Sequence[FileDiff], *, named: bool, expanded: bool) -> list[RenderableType]:
    renderables: list[RenderableType] = []
    shares = fair_shares([len(file.rows) for file in files], _EXPANDED_LINES if expanded else _FOLDED_LINES)
    for file, share in zip(files, shares, strict=True):
        if named:
            renderables.append(Margin(_file_line(file), "  └ ", "    ", style="dim"))
        shown = _folded(file.rows, max(share, _MIN_LINES))
        if shown:
            renderables.append(Margin(DiffLines(shown, file.moved_to or file.path)))
        if left := len(file.rows) - len(shown):
            renderables.append(Margin(Text(f"… {counted(left, 'more line')}", "dim"), "    ", "    "))
    return renderables


def fair_shares(wanted: Sequence[int], available: int) -> list[int]:
    """Divides the available rows: each file gets all that it wants, or an equal part of the rest."""
    shares = [0] * len(wanted)
    order = sorted(range(len(wanted)), key=lambda at: wanted[at])
    for position, at in enumerate(order):
        shares[at] = min(wanted[at], available // (len(order) - position))
        available -= shares[at]
    return shares


def _folded(rows: Sequence[DiffRow], max_rows: int) -> Sequence[DiffRow]:
    """All rows if they fit, else those from the first change on."""
    if len(rows) <= max_rows:
        return rows
    first = next((at for at, row in enumerate(rows) if row.sign in _SIGNS), 0)
    return rows[first : first + max_rows]


def _headline(files: Sequence[FileDiff], *, is_ok: bool) -> OneLine:
    line = Text.assemble(("✓ ", "good") if is_ok else ("✗ ", "bad"))
    if len(files) == 1:
        line.append_text(Text.assemble(f"{_VERBS[files[0].change_type]} ", _path(files[0])))
    else:
        line.append(f"Edited {counted(len(files), 'file')}")
    return OneLine(line, _counts(files) if is_ok else Text(" · failed", "bad"))


def _file_line(file: FileDiff) -> OneLine:
    verb = "" if file.change_type == "update" else f"{_VERBS[file.change_type].lower()} "
    return OneLine(Text.assemble(verb, _path(file)), _counts([file]))


def _counts(files: Sequence[FileDiff]) -> Text:
    signs = [row.sign for file in files for row in file.rows]
    return Text.assemble("  ", (f"+{signs.count('+')}", "diff.add"), " ", (f"−{signs.count('-')}", "diff.remove"))


def _path(file: FileDiff) -> Text:
    text = line_of(file.path, "diff.path")
    if file.moved_to:
        text = Text.assemble(text, (" → ", "dim"), line_of(file.moved_to, "diff.path"))
    return text

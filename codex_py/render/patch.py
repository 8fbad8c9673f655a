"""A patch as coloured diffs with line numbers, one file below the other, cut where it gets long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import FileChange
from codex_py.render.diff_lines import DiffLines, DiffRow
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, words
from codex_py.render.path import relative_path

FileChangeType: TypeAlias = Literal["add", "delete", "update"]

_FOLDED_LINES: Final = 60
_EXPANDED_LINES: Final = 2000
# Every file shows something, so that none is overlooked.
_MIN_LINES: Final = 3
_REASON_SHOWN: Final = 4000
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")
_VERBS: Final = {"add": "Added", "delete": "Deleted", "update": "Edited"}


class FileDiff(NamedTuple):
    """What happens to one file; `moved_to` is empty when it stays."""

    change_type: FileChangeType
    path: str
    rows: Sequence[DiffRow]
    moved_to: str = ""


def render_changes(
    changes: Sequence[FileChange], *, ok: bool = True, output: str = "", expanded: bool = False, cwd: Path | None = None
) -> ScrollbackEntry:
    """The files of a patch; paths below `cwd` are shown from there. A failed one says why in `output`."""
    files = [
        FileDiff(
            change.kind,
            relative_path(change.path, cwd),
            read_diff(change.diff),
            relative_path(change.move_path, cwd) if change.move_path else "",
        )
        for change in changes
    ]
    return _render(files, failure=None if ok else output, expanded=expanded)


def render_unreadable_patch(patch: str) -> ScrollbackEntry:
    """A call whose patch is none."""
    headline = Text.assemble(("✗ ", "bad"), "A patch that cannot be read")
    return ScrollbackEntry(headline, Margin(words(patch[:_REASON_SHOWN].expandtabs(4), "output")))


def read_diff(diff: str) -> list[DiffRow]:
    """The rows of a unified diff without its file headers. Those of a hunk that names no lines have no numbers."""
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


def _render(files: Sequence[FileDiff], *, failure: str | None, expanded: bool) -> ScrollbackEntry:
    renderables: list[RenderableType] = [_headline(files, is_ok=failure is None)]
    if failure is not None:
        reason = failure.strip()[:_REASON_SHOWN]
        return ScrollbackEntry(*renderables, *([Margin(words(reason, "output"))] if reason else []))
    max_rows = _EXPANDED_LINES if expanded else _FOLDED_LINES
    for file in files:
        if len(files) > 1:
            renderables.append(Margin(_file_line(file), "  └ ", "    ", style="dim"))
        shown = file.rows[: max(max_rows, _MIN_LINES)]
        max_rows -= len(shown)
        if shown:
            renderables.append(Margin(DiffLines(shown, file.moved_to or file.path)))
        if left := len(file.rows) - len(shown):
            renderables.append(Margin(Text(f"… {left} more line{'' if left == 1 else 's'}", "dim"), "    ", "    "))
    return ScrollbackEntry(*renderables)


def _headline(files: Sequence[FileDiff], *, is_ok: bool) -> OneLine:
    line = Text.assemble(("✓ ", "good") if is_ok else ("✗ ", "bad"))
    if len(files) == 1:
        line.append_text(Text.assemble(f"{_VERBS[files[0].change_type]} ", _path(files[0])))
    else:
        line.append(f"Edited {len(files)} files")
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

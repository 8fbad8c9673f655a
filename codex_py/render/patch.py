"""A patch as coloured diffs with line numbers, one file below the other, cut where it gets long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
_MARKERS: Final[dict[str, FileChangeType]] = {
    "*** Add File: ": "add",
    "*** Delete File: ": "delete",
    "*** Update File: ": "update",
}
_MOVE: Final = "*** Move to: "


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


def render_patch_text(patch: str, *, ok: bool = True, output: str = "", expanded: bool = False) -> ScrollbackEntry:
    """The same of a patch in the words of `apply_patch`, which does not say where its lines stand."""
    files = list(read_patch(patch))
    if not files:
        headline = Text.assemble(("✗ ", "bad"), "A patch that cannot be read")
        return ScrollbackEntry(headline, Margin(words(patch[:_REASON_SHOWN].expandtabs(4), "output")))
    return _render(files, failure=None if ok else output, expanded=expanded)


def read_diff(diff: str) -> list[DiffRow]:
    """The rows of a unified diff; its file headers are left out."""
    rows: list[DiffRow] = []
    old = new = 0
    in_hunk = False
    for line in diff.removesuffix("\n").split("\n"):
        if hunk := _HUNK.match(line):
            old, new = int(hunk[1]), int(hunk[2])
            rows += [DiffRow("~", 0, "⋯")] if in_hunk else []
            in_hunk = True
        elif not in_hunk:
            continue
        elif line.startswith("+"):
            rows.append(DiffRow("+", new, line[1:]))
            new += 1
        elif line.startswith("-"):
            rows.append(DiffRow("-", old, line[1:]))
            old += 1
        elif line.startswith(" ") or not line:
            rows.append(DiffRow(" ", new, line[1:]))
            old, new = old + 1, new + 1
        else:
            rows.append(DiffRow("~", 0, line.removeprefix("\\ ")))
    return rows


def read_patch(patch: str) -> Iterator[FileDiff]:
    """The files of a patch as the model wrote it; the rows have no numbers."""
    current: FileDiff | None = None
    rows: list[DiffRow] = []
    for line in patch.split("\n"):
        marker = next((mark for mark in _MARKERS if line.startswith(mark)), None)
        if marker is not None:
            if current is not None:
                yield current
            rows = []
            current = FileDiff(_MARKERS[marker], line.removeprefix(marker).strip(), rows)
        elif current is not None and line.startswith(_MOVE):
            current = current._replace(moved_to=line.removeprefix(_MOVE).strip())
        elif current is not None and not line.startswith("***"):
            rows += _patch_row(line, is_first=not rows)
    if current is not None:
        yield current


def _patch_row(line: str, *, is_first: bool) -> list[DiffRow]:
    match line[:1]:
        case "@":
            location = line.removeprefix("@@").strip()
            return [] if is_first and not location else [DiffRow("~", 0, location or "⋯")]
        case "+" | "-" | " " as sign:
            return [DiffRow(sign, 0, line[1:])]
        case _:
            return []


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

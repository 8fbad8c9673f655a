"""The text of a file after the chunks of one hunk. Pure.

Lines that stay keep the file's own bytes, their line ending included; lines that come in take the first line ending
of the file. A text that is not empty ends with one. A byte-order mark counts for nothing and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from codex_py.patch.closest import describe_closest, show_lines
from codex_py.patch.grammar import Chunk, LineSign, PatchError, UpdateFile
from codex_py.patch.seek import Effort, LineFinder, SeekMatch

_BOM: Final = "\ufeff"
_NONE: Final[tuple[LineSign, str]] = (" ", "")
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class EditedText:
    """The new text, and what the model should know about how it came about."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    lines: Sequence[tuple[LineSign, str]]


def edit_text(text: str, hunk: UpdateFile, *, name: str, effort: Effort) -> EditedText:
    """Apply every chunk in order, each after the one before. `name` is for the messages.

    Raise `PatchError` for lines that are not there, with the closest ones that are.
    """
    mark = _BOM if text.startswith(_BOM) else ""
    effort.spend_on(text)
    pairs: list[tuple[str, str]] = _LINE.findall(text, len(mark))
    # The end of the text matches once more, after the last line.
    pairs.pop()
    effort.spend(len(pairs))
    placing = _Placing([line for line, _ in pairs], name, effort, mark=mark)
    for number, chunk in enumerate(hunk.chunks, 1):
        placing.locate(chunk, number)
    edited = _join(pairs, placing.edits())
    keeps = mark and not placing.removes_mark() and not edited.startswith(mark)
    return EditedText(mark + edited if keeps else edited, placing.notes())


class _Placing:
    """Finds the place of each chunk; the cursor only moves forward."""

    def __init__(self, lines: list[str], name: str, effort: Effort, *, mark: str) -> None:
        self._lines = lines
        self._name = name
        self._effort = effort
        self._plain = self._finder = LineFinder(lines, effort)
        self._mark = mark
        self._cursor = 0
        self._edits: list[_Edit] = []
        self._appended: list[_Edit] = []
        self._headers: set[int] = set()
        self._notes: list[tuple[int | None, str]] = []

    def locate(self, chunk: Chunk, number: int) -> None:
        where = f"hunk {number}, patch line {chunk.line}"
        self._finder = self._finder_for(chunk)
        header = self._follow_headers(chunk, where)
        if all(sign == "+" for sign, _ in chunk.lines):
            self._append(chunk, where)
            return
        edit, match = self._placed(chunk, where, header)
        if match.again is not None and header is None:
            self._notes.append((match.again, _repeat_note(self._name, where, "same lines", match)))
        self._cursor = match.start + sum(sign != "+" for sign, _ in edit.lines)
        if self._cursor == len(self._lines):
            edit = self._without_tail(edit)
        self._edits.append(edit)

    def edits(self) -> list[_Edit]:
        return self._edits + self._appended

    def removes_mark(self) -> bool:
        """Whether the first line is removed with the mark before it."""
        first = next((edit for edit in self._edits if edit.start == 0), None)
        old = next((line for line in first.lines if line[0] != "+"), _NONE) if first else _NONE
        return old[0] == "-" and _is_marked(old[1])

    def notes(self) -> tuple[str, ...]:
        """Remarks in patch order, without those on a second place that a later chunk went on to change."""
        taken = self._headers | {edit.start for edit in self._edits}
        return tuple(note for again, note in self._notes if again not in taken)

    def _finder_for(self, chunk: Chunk) -> LineFinder:
        """One that sees the mark, for a chunk whose writer has copied it with the first line."""
        old = (*chunk.headers, *(line for sign, line in chunk.lines if sign != "+"))
        if not self._mark or not any(map(_is_marked, old)):
            return self._plain
        return LineFinder([self._mark + self._lines[0], *self._lines[1:]] if self._lines else [], self._effort)

    def _follow_headers(self, chunk: Chunk, where: str) -> int | None:
        """Move the cursor past the line of each header in turn; give back the line of the last one."""
        found = None
        for text in chunk.headers:
            match = self._finder.find_header(text, self._cursor)
            if match is None:
                lead = f"Failed to find context '{show_lines([text])}' in {self._name}"
                raise PatchError(f"{lead}\n{where}\n{describe_closest(self._lines, [text], self._cursor)}")
            # What follows a first header belongs to it, wherever else it stands.
            if match.again is not None and found is None:
                self._notes.append((match.again, _repeat_note(self._name, where, f"context '{text}'", match)))
            found = match.start
            self._cursor = found + 1
            self._headers.add(found)
        return found

    def _append(self, chunk: Chunk, where: str) -> None:
        if chunk.headers:
            note = f"{self._name}: {where}: no old lines were given, so the new ones went to the end of the file"
            self._notes.append((None, note))
        self._appended.append(_Edit(len(self._lines), chunk.lines))

    def _without_tail(self, edit: _Edit) -> _Edit:
        """Move what an edit adds after its last kept line to the additions at the end, which keep the patch's order."""
        size = len(edit.lines)
        while size and edit.lines[size - 1][0] == "+":
            size -= 1
        if size and edit.lines[size - 1][0] == "-":
            return edit
        self._appended.append(_Edit(len(self._lines), edit.lines[size:]))
        return _Edit(edit.start, edit.lines[:size])

    def _placed(self, chunk: Chunk, where: str, header: int | None) -> tuple[_Edit, SeekMatch]:
        find = self._finder.find_last if chunk.at_end else self._finder.find
        # The line of the header is often repeated as the first line of context.
        for start in (self._cursor,) if header is None else (self._cursor, header):
            for lines in _readings(chunk):
                old = [line for sign, line in lines if sign != "+"]
                match = find(old, start) if old else SeekMatch(self._cursor)
                if match is not None:
                    return _Edit(match.start, lines), match
        old = [line for sign, line in chunk.lines if sign != "+"]
        end_note = " at the end of the file" if chunk.at_end else ""
        lead = f"Failed to find expected lines in {self._name}:\n{show_lines(old)}\n{where}{end_note}"
        raise PatchError(f"{lead}\n{describe_closest(self._lines, old, self._cursor)}")


def _is_marked(line: str) -> bool:
    return line.startswith(_BOM)


def _readings(chunk: Chunk) -> list[list[tuple[LineSign, str]]]:
    """The chunk's lines, then without a last empty line, then without any that may be only spacing."""
    full = list(chunk.lines)
    readings = [full]
    old = [index for index, (sign, _) in enumerate(full) if sign != "+"]
    if old and not full[old[-1]][1]:
        shorter = full.copy()
        sign, _ = shorter.pop(old[-1])
        if sign == " " and old[-1] < len(shorter):
            shorter.insert(old[-1], ("+", ""))
        if (sign == "-" or old[-1] < len(full) - 1) and shorter and shorter[-1] == ("+", ""):
            shorter.pop()
        readings.append(shorter)
    if chunk.loose > 1:
        readings.append(full[: -chunk.loose])
    return readings


def _repeat_note(name: str, where: str, what: str, match: SeekMatch) -> str:
    again = (match.again or 0) + 1
    return f"{name}: {where}: {what} found at line {match.start + 1} and again at line {again}; the first was taken"


def _join(pairs: Sequence[tuple[str, str]], edits: Sequence[_Edit]) -> str:
    ending = next((ending for _, ending in pairs if ending), "\n")
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces += [line + (own or ending) for line, own in pairs[at : edit.start]]
        at = edit.start
        for sign, text in edit.lines:
            if sign == "+":
                pieces.append(text + ending)
                continue
            if sign == " ":
                pieces.append(pairs[at][0] + (pairs[at][1] or ending))
            at += 1
    pieces += [line + (own or ending) for line, own in pairs[at:]]
    return "".join(pieces)

"""The text of a file after the chunks of one hunk, or the lines that come closest to one. Pure.

Lines that stay keep the file's own bytes, their line ending included; lines that come in take the first line ending
of the file. A text that is not empty ends with one. A byte-order mark counts for nothing and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from codex_py.patch.files import MAX_FILE_BYTES
from codex_py.patch.grammar import Chunk, LineSign, PatchError, TextReplacement, UpdateFile
from codex_py.patch.seek import Effort, LineFinder, SeekMatch, fold

_SHOWN_LINES: Final = 8
_SHOWN_WIDTH: Final = 160
_VOTERS: Final = 100
_REPEATS: Final = 50
_CANDIDATES: Final = 2000
_FINALISTS: Final = 20
_WEIGHTY: Final = 8
_ENOUGH: Final = 0.5


def show_lines(lines: Sequence[str]) -> str:
    """Lines as a message may quote them: not too many, none too long."""
    shown = [_cut(line) for line in lines[: 3 * _SHOWN_LINES]]
    if len(lines) > len(shown):
        shown.append(f"[{len(lines) - len(shown)} more lines]")
    return "\n".join(shown)


def describe_closest(lines: Sequence[str], expected: Sequence[str], cursor: int) -> str:
    """Say where the `expected` lines may have been meant. `cursor` is the first line that was searched, from 0."""
    if not lines:
        return "the file is empty"
    start, weight = _aligned(lines, expected, cursor)
    if weight < _WEIGHTY:
        similar = _similar(lines, expected, cursor)
        start = start if similar is None else similar
    if start is None:
        return f"nothing like it among the {len(lines)} lines of the file"
    end = min(len(lines), start + min(len(expected), _SHOWN_LINES))
    shown = "\n".join(f"{number + 1}: {_cut(lines[number])}" for number in range(start, end))
    before = f" (the search began at line {cursor + 1}: hunks go down the file)" if start < cursor else ""
    return f"the closest lines found{before}:\n{shown}"


def _aligned(lines: Sequence[str], expected: Sequence[str], cursor: int) -> tuple[int | None, int]:
    """The start at which most of the wanted text stands where it should; each equal line votes with its length."""
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(expected[:_VOTERS]):
        if key := fold(line):
            offsets.setdefault(key, []).append(offset)
    positions: dict[str, list[int]] = {key: [] for key in offsets}
    for index, line in enumerate(lines):
        found = positions.get(fold(line))
        if found is not None:
            found.append(index)
    votes: dict[int, int] = {}
    for key, found in positions.items():
        if len(found) * len(offsets[key]) > _REPEATS:
            continue
        for index in found:
            for offset in offsets[key]:
                start = max(0, index - offset)
                votes[start] = votes.get(start, 0) + min(len(key), 40)
    if not votes:
        return None, 0
    best = max(votes, key=lambda start: (votes[start], -abs(start - cursor)))
    return best, votes[best]


def _similar(lines: Sequence[str], expected: Sequence[str], cursor: int) -> int | None:
    """Where the longest wanted line would stand if the line most like it were that line."""
    offset = max(range(len(expected)), key=lambda index: len(fold(expected[index])[:_SHOWN_WIDTH]))
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(fold(expected[offset])[:_SHOWN_WIDTH])
    first = max(0, min(cursor - _CANDIDATES // 4, len(lines) - _CANDIDATES))
    scores: list[tuple[float, int]] = []
    for position in range(first, min(len(lines), first + _CANDIDATES)):
        matcher.set_seq1(fold(lines[position][:_SHOWN_WIDTH]))
        if matcher.real_quick_ratio() >= _ENOUGH and (score := matcher.quick_ratio()) >= _ENOUGH:
            scores.append((score, -position))
    best, chosen = _ENOUGH, None
    for _, negated in sorted(scores, reverse=True)[:_FINALISTS]:
        matcher.set_seq1(fold(lines[-negated][:_SHOWN_WIDTH]))
        if (score := matcher.ratio()) > best:
            best, chosen = score, max(0, -negated - offset)
    return chosen


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN_WIDTH else line[:_SHOWN_WIDTH] + "…"


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


def replace_text(text: str, hunk: TextReplacement, *, name: str) -> str:
    """The text of a file with `hunk.new` in place of `hunk.old`, which must be in it once, or at least once if it is
    replaced everywhere. In a file with CRLF a plain line feed stands for it. Raises `PatchError`.
    """
    old, new = hunk.old, hunk.new
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = text.count(old) if old else 0
    if not old:
        raise PatchError(f"the old text is empty: copy the text to replace from {name}")
    if old == new:
        raise PatchError("the new text is the same as the old one")
    if count == 0:
        closest = describe_closest(text.splitlines(), hunk.old.splitlines() or [hunk.old], 0)
        raise PatchError(f"the old text is not in {name}; {closest}")
    if count > 1 and not hunk.everywhere:
        lines = ", ".join(map(str, _lines_of(text, old)))
        raise PatchError(
            f"the old text stands {count} times in {name} (lines {lines}{', …' if count > _SHOWN_LINES else ''}): "
            "add lines around it until it is the only one, or replace all of them"
        )
    if len(text) + count * (len(new) - len(old)) > MAX_FILE_BYTES:
        raise PatchError(f"{name} would be larger than {MAX_FILE_BYTES} bytes")
    return text.replace(old, new)


def _lines_of(text: str, old: str) -> list[int]:
    """The lines, from 1, on which the first places of a text begin."""
    lines, start, line = list[int](), 0, 1
    while len(lines) < _SHOWN_LINES and (at := text.find(old, start)) >= 0:
        line += text.count("\n", start, at)
        lines.append(line)
        line += text.count("\n", at, at + len(old))
        start = at + len(old)
    return lines

"""The patch format: text in, hunks out. Knows nothing of files.

The format is the one models are trained on (`*** Begin Patch` … `*** End Patch`). Where only one reading is possible a
slip is forgiven: blank lines between hunks, several `@@` lines before a chunk, `@@ -1,3 +1,3 @@` as a bare `@@`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from itertools import compress, count, repeat
from typing import Final, Literal, TypeAlias

from codex_py.errors import ToolError
from codex_py.patch.markers import BEGIN, END

MAX_PATCH_BYTES: Final = 8 * 1024 * 1024
MAX_PATH_BYTES: Final = 4096
MAX_POSITIONS: Final = 20_000
MAX_HEADERS: Final = 32

_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "
_END_OF_FILE: Final = "*** End of File"
_ENVIRONMENT: Final = "*** Environment ID: "
_HEREDOC_STARTS: Final = ("<<EOF", "<<'EOF'", '<<"EOF"')
_LINE_NUMBERS: Final = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_HEADERS: Final = f"'{_ADD}{{path}}', '{_DELETE}{{path}}', '{_UPDATE}{{path}}'"

LineSign: TypeAlias = Literal[" ", "+", "-"]
_EMPTY: Final[tuple[LineSign, str]] = (" ", "")


class PatchError(ToolError):
    """A patch that cannot be read or does not fit the files; nothing has been written."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One place in a file: its lines, and the `@@` lines that lead to it.

    `loose` counts the last lines that were empty in the patch, without even the leading space: they may be context or
    only spacing. `line` is the chunk's first line in the patch, from 1.
    """

    headers: tuple[str, ...]
    lines: tuple[tuple[LineSign, str], ...]
    at_end: bool
    loose: int
    line: int


@dataclass(frozen=True, slots=True)
class AddFile:
    path: str
    content: str
    line: int


@dataclass(frozen=True, slots=True)
class DeleteFile:
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class UpdateFile:
    path: str
    move_to: str | None
    chunks: tuple[Chunk, ...]
    line: int


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """Text in place of text that stands once in a file, or `everywhere`. No patch has it: a tool of its own does."""

    path: str
    old: str
    new: str
    everywhere: bool


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A file that is made, or replaced whole. No patch has it, as above."""

    path: str
    content: str


Hunk: TypeAlias = AddFile | DeleteFile | UpdateFile


@dataclass(frozen=True, slots=True)
class PlainEdit:
    """A change that did not come as the text of a patch; it is planned and written like one."""

    hunks: tuple[TextReplacement | WholeFile]


@dataclass(frozen=True, slots=True)
class ParsedPatch:
    hunks: tuple[Hunk, ...]


def checked_path(path: str) -> str:
    """A path of a change that did not come as a patch. Raises `PatchError` for one that no patch could have."""
    if not path.strip() or "\0" in path or "\n" in path:
        raise PatchError("the path is empty, or has a line break or a NUL")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise PatchError(f"a path may have at most {MAX_PATH_BYTES} bytes")
    return path


def parse_patch(text: str) -> ParsedPatch:
    """Read a patch of at most 8 MiB, in time linear in its size. Raise `PatchError` with the line that is wrong.

    A patch without hunks is read as such; whether that is an error is up to the caller.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise PatchError(f"Invalid patch hunk on line {line}: half of a surrogate pair is not text") from error
    if size > MAX_PATCH_BYTES:
        raise PatchError(f"Invalid patch: {size} bytes are more than the {MAX_PATCH_BYTES} a patch may have")
    return _Parser(_body(text)).parse()


def _body(text: str) -> list[str]:
    lines = _lines(text)
    if len(lines) >= 4 and lines[0].strip() in _HEREDOC_STARTS and lines[-1].strip() == "EOF":
        lines = _lines("\n".join(lines[1:-1]))
    if lines[0].strip() != BEGIN:
        raise PatchError(f"Invalid patch: The first line of the patch must be '{BEGIN}'")
    if lines[-1].strip() != END:
        raise PatchError(f"Invalid patch: The last line of the patch must be '{END}'")
    return lines


def _lines(text: str) -> list[str]:
    # What some editors and shells write before a text is no part of it.
    lines = text.removeprefix("\ufeff").strip().split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


class _Parser:
    """Walks the lines between the first and the last one. Line numbers count from 1, the `Begin` line included."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 1
        self._end = len(lines) - 1
        # Looked up, because walking over a million line ends takes a quarter of a second.
        self._filled = list(compress(count(), lines))
        self._positions = 0

    def parse(self) -> ParsedPatch:
        if self._more() and self._line().strip().startswith(_ENVIRONMENT):
            self._at += 1
        hunks: list[Hunk] = []
        self._skip_blank()
        while self._more():
            hunks.append(self._hunk())
            self._skip_blank()
        return ParsedPatch(tuple(hunks))

    def _count(self, number: int) -> None:
        self._positions += 1
        if self._positions > MAX_POSITIONS:
            raise _bad(number, f"a patch may change at most {MAX_POSITIONS} places")

    def _hunk(self) -> Hunk:
        number = self._at + 1
        self._count(number)
        header = self._line().strip()
        self._at += 1
        if header.startswith(_ADD):
            return AddFile(self._path(header, _ADD, number), self._added_text(), number)
        if header.startswith(_DELETE):
            return DeleteFile(self._path(header, _DELETE, number), number)
        if header.startswith(_UPDATE):
            return self._update(self._path(header, _UPDATE, number), number)
        raise _bad(number, f"'{_shown(header)}' is not a valid hunk header. Valid hunk headers: {_HEADERS}")

    def _path(self, header: str, marker: str, number: int) -> str:
        path = header[len(marker) :].strip()
        if not path:
            raise _bad(number, f"'{marker.strip()}' needs a path")
        if "\0" in path:
            raise _bad(number, "a path cannot have a NUL")
        if len(path.encode()) > MAX_PATH_BYTES:
            raise _bad(number, f"a path may have at most {MAX_PATH_BYTES} bytes")
        return path

    def _added_text(self) -> str:
        start = end = self._at
        while end < self._end and self._lines[end].startswith("+"):
            end += 1
        self._at = end
        return "".join([line[1:] + "\n" for line in self._lines[start:end]])

    def _update(self, path: str, number: int) -> UpdateFile:
        self._skip_empty()
        move_to = None
        if self._more() and self._line().startswith(_MOVE):
            self._at += 1
            move_to = self._path(self._lines[self._at - 1].rstrip(), _MOVE, self._at)
        chunks: list[Chunk] = []
        self._skip_spacing()
        while self._more() and not self._line().startswith("***"):
            chunks.append(self._chunk(first=not chunks))
            self._skip_spacing()
        if not chunks:
            raise _bad(number, f"Update file hunk for path '{path}' is empty")
        return UpdateFile(path, move_to, tuple(chunks), number)

    def _chunk(self, *, first: bool) -> Chunk:
        number = self._at + 1
        self._count(number)
        headers = self._headers()
        if self._at + 1 == number and not first:
            raise _bad(number, f"Expected update hunk to start with a @@ context marker, got: '{_shown(self._line())}'")
        lines, loose = self._chunk_lines()
        at_end = self._more() and self._line().rstrip() == _END_OF_FILE
        if not lines:
            raise self._no_lines(at_end=at_end)
        if at_end:
            self._at += 1
        return Chunk(tuple(headers), tuple(lines), at_end, loose, number)

    def _headers(self) -> list[str]:
        """The texts of the `@@` lines that come now, with empty lines between them or without."""
        headers: list[str] = []
        index = bisect_left(self._filled, self._at)
        while (line := self._lines[self._filled[index]]).startswith("@@"):
            self._at = self._filled[index] + 1
            text = line[2:].removeprefix(" ").rstrip()
            if text and not _LINE_NUMBERS.match(text):
                headers.append(text)
            if len(headers) > MAX_HEADERS:
                raise _bad(self._at, f"at most {MAX_HEADERS} @@ lines may lead to one place")
            index += 1
        return headers

    def _chunk_lines(self) -> tuple[list[tuple[LineSign, str]], int]:
        lines: list[tuple[LineSign, str]] = []
        loose = 0
        while self._more():
            line = self._line()
            sign = line[:1]
            if sign == " " or sign == "+" or sign == "-":
                lines.append((sign, line[1:]))
                loose = 0
                self._at += 1
            elif not sign:
                empty = self._next_filled() - self._at
                lines.extend(repeat(_EMPTY, empty))
                loose += empty
                self._at += empty
            else:
                break
        return lines, loose

    def _no_lines(self, *, at_end: bool) -> PatchError:
        if at_end or not self._more() or self._line().startswith("***"):
            return _bad(self._at + 1, "Update hunk does not contain any lines")
        return _bad(
            self._at + 1,
            f"Unexpected line found in update hunk: '{_shown(self._line())}'. Every line should start with "
            "' ' (context line), '+' (added line), or '-' (removed line)",
        )

    def _more(self) -> bool:
        return self._at < self._end

    def _line(self) -> str:
        return self._lines[self._at]

    def _skip_blank(self) -> None:
        while self._more() and not self._line().strip():
            self._at += 1

    def _skip_spacing(self) -> None:
        # A second end-of-file marker, or one before any line, ties nothing to anything. Behind one there is no context.
        ended = self._lines[self._at - 1].rstrip() == _END_OF_FILE
        while self._more():
            line = self._line()
            if line.rstrip() == _END_OF_FILE:
                ended = True
            elif line and (line.strip() or not ended):
                return
            self._at += 1

    def _skip_empty(self) -> None:
        self._at = self._next_filled()

    def _next_filled(self) -> int:
        """Where the next line is that is not empty: at the latest the one that ends the patch."""
        return self._filled[bisect_left(self._filled, self._at)]


def _bad(number: int, message: str) -> PatchError:
    return PatchError(f"Invalid patch hunk on line {number}: {message}")


def _shown(line: str) -> str:
    return line if len(line) <= 200 else line[:200] + "…"

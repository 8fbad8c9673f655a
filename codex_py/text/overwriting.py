"""Shows lines that a program has written over, such as those of a progress bar, as a terminal would."""

from __future__ import annotations

import re
from typing import Final

# What moves back on a line: carriage return, backspace, and the sequence for a column.
_MOVE: Final = re.compile(rb"\r|\x08|\x1b\[\d*G")
_MIN_MOVES: Final = 2
# A move, an erasure in a line, another sequence, or text.
_TOKEN: Final = re.compile(
    r"(?P<move>\r|\x08|\x1b\[(?P<column>\d{0,5})G)"
    r"|\x1b\[(?P<erase>[012]?)K"
    r"|\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))"
    r"|(?P<text>[^\r\x08\x1b]+|\x1b)"
)


def show_overwritten(raw: bytes) -> bytes:
    """Each line of `raw` on which a program has moved back at least twice, as a terminal shows it, without colours.

    All other lines are kept as they are, also one with a single carriage return. `\\r\\n` ends a line.
    """
    if raw.count(b"\r") == raw.count(b"\r\n") and b"\b" not in raw and b"\x1b[" not in raw:
        return raw
    *lines, last = raw.split(b"\n")
    return b"\n".join([*map(_show_ended, lines), _show(last)])


def shorten_overwritten(line: bytes) -> bytes:
    """An unfinished line that shows the same as `line`, whatever follows, without the text that was written over."""
    if not _is_overwritten(line):
        return line
    end = max(line.rfind(b"\r"), line.rfind(b"\b"), line.rfind(b"\x1b"))
    text, column = _write_over(line[:end])
    # Two moves, so that the line is known as written over.
    return b"\r%b\x1b[%dG%b" % (text, column + 1, line[end:])


def _show_ended(line: bytes) -> bytes:
    text = line.rstrip(b"\r")
    return _show(text) + line[len(text) :]


def _show(line: bytes) -> bytes:
    return _write_over(line)[0].rstrip(b" ") if _is_overwritten(line) else line


def _is_overwritten(line: bytes) -> bool:
    """Whether a program has moved back on a line of text."""
    return b"\0" not in line and len(_MOVE.findall(line)) >= _MIN_MOVES


def _write_over(line: bytes) -> tuple[bytes, int]:
    """The line as a terminal shows it, and the column of its cursor, from 0."""
    cells: list[str] = []
    column = 0
    for token in _TOKEN.finditer(line.decode("utf-8", "surrogateescape")):
        text, move, erase = token["text"], token["move"], token["erase"]
        if text is not None:
            cells += " " * (column - len(cells))
            cells[column : column + len(text)] = text
            column += len(text)
        elif move == "\b":
            column = max(column - 1, 0)
        elif move is not None:
            column = max(int(token["column"] or 1), 1) - 1
        elif erase == "2":
            cells.clear()
        elif erase == "1":
            cells[: column + 1] = " " * min(column + 1, len(cells))
        elif erase is not None:
            del cells[column:]
    return "".join(cells).encode("utf-8", "surrogateescape"), column

"""Where a key stands in a TOML text, which `tomllib` does not tell. Loaded only to word an error or a warning.

The text has been read by `tomllib` before, so what is not valid TOML may be misplaced here but does no harm.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final, NamedTuple

from codex_py.config.keys import KeyPath

# A string that is not closed ends with its line or the text, so that no text takes more than one pass.
_TOKEN: Final = (
    r"(?P<gap>[ \t\r]+|#[^\n]*)|(?P<newline>\n)"
    r'|(?P<name>"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|\'\'\'.*?(?:\'{3,5}|\Z)'
    r'|"(?:\\.|[^"\\\n])*+"?|\'[^\'\n]*+\'?|[^\s\[\]{}=,."\'#]+)'
    r"|(?P<mark>.)"
)
_BETWEEN_KEYS: Final = frozenset("[]{}=,\n")


class Token(NamedTuple):
    """A name, a text in its quotes, a mark or a line end; `line` from 1, `start` its place in the text."""

    text: str
    line: int
    start: int


class _Frame(NamedTuple):
    """An open list or inline table inside a value."""

    path: KeyPath
    is_list: bool


def line_of(text: str, path: KeyPath) -> int | None:
    """The line (from 1) on which a key, or the nearest table round it, begins; None when there is none."""
    lines = key_lines(text)
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The first line of every key, table and list entry in a TOML text."""
    lines: dict[KeyPath, int] = {}
    entries: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for statement in _statements(text):
        if statement[0].text == "[":
            table = _header(statement, entries)
            _record(lines, table, statement[0].line)
        else:
            _assignment(statement, table, lines)
    return lines


def path_in_line(text: str, line: int) -> tuple[KeyPath, bool]:
    """The key that is set, or the table that is opened, by what stands in a line, and whether it is a table."""
    entries: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for statement in _statements(text):
        is_header = statement[0].text == "["
        if is_header:
            table = _header(statement, entries)
        if statement[-1].line < line:
            continue
        if is_header:
            return table, True
        lines: dict[KeyPath, int] = {}
        _assignment(statement, table, lines)
        here = [path for path in lines if len(path) > len(table)]
        # The deepest key of `a.b = 1` is the one that is set; what its value holds comes behind it.
        names = sum(1 for equal in _before_equals(statement) if equal.text != ".")
        return here[names - 1] if len(here) >= names > 0 else table, False
    return (), False


def longest_key(text: str) -> int:
    """The most dots between names that follow each other: how deep one key goes."""
    longest = dots = 0
    for token in tokens(text):
        dots = dots + 1 if token.text == "." else dots if token.text not in _BETWEEN_KEYS else 0
        longest = max(longest, dots)
    return longest


def tokens(text: str) -> Iterator[Token]:
    """The words and marks of a text in their order, comments left out."""
    line = 1
    for match in re.finditer(_TOKEN, text, re.DOTALL):
        if match.lastgroup != "gap":
            yield Token(match.group(), line, match.start())
        line += match.group().count("\n")


def _statements(text: str) -> Iterator[list[Token]]:
    """The tokens of one header or one `key = value`, which may go over several lines."""
    statement: list[Token] = []
    depth = 0
    for token in tokens(text):
        if token.text == "\n":
            if depth <= 0 and statement:
                yield statement
                statement, depth = [], 0
            continue
        statement.append(token)
        depth += (token.text in ("[", "{")) - (token.text in ("]", "}"))
    if statement:
        yield statement


def _before_equals(statement: list[Token]) -> Iterator[Token]:
    for token in statement:
        if token.text == "=":
            return
        yield token


def _header(statement: list[Token], entries: dict[KeyPath, int]) -> KeyPath:
    """The table a header opens, with the position in each array of tables on the way."""
    is_array = len(statement) > 1 and statement[1].text == "["
    names = [_plain(token.text) for token in statement if token.text not in ("[", "]", ".")]
    path: KeyPath = ()
    for position, name in enumerate(names, 1):
        path = (*path, name)
        if is_array and position == len(names):
            entries[path] = entries.get(path, 0) + 1
        if path in entries:
            path = (*path, entries[path] - 1)
    return path


def _assignment(statement: list[Token], table: KeyPath, lines: dict[KeyPath, int]) -> None:
    """Note the key of a statement and every key and list entry inside its value."""
    path, names = table, list[str]()
    frames = [_Frame(table, is_list=False)]
    positions = [0]
    in_key = True
    for text, line, _ in statement:
        frame = frames[-1]
        if in_key and text == "=":
            path, names, in_key = (*frame.path, *names), [], False
            _record(lines, path, line)
        elif in_key and text not in (".", "}", ","):
            names.append(_plain(text))
        elif text in ("[", "{"):
            path = _entry(frame, positions, path, lines, line)
            frames.append(_Frame(path, is_list=text == "["))
            positions.append(0)
            in_key = text == "{"
        elif text in ("]", "}") and len(frames) > 1:
            path, _ = frames.pop()
            positions.pop()
            in_key = False
        elif text == ",":
            positions[-1] += 1
            in_key = not frame.is_list
        else:
            _entry(frame, positions, path, lines, line)


def _entry(frame: _Frame, positions: list[int], path: KeyPath, lines: dict[KeyPath, int], line: int) -> KeyPath:
    """The path of a value that begins here: a list's next entry, or what the key before it said."""
    if not frame.is_list:
        return path
    path = (*frame.path, positions[-1])
    _record(lines, path, line)
    return path


def _record(lines: dict[KeyPath, int], path: KeyPath, line: int) -> None:
    for length in range(1, len(path) + 1):
        lines.setdefault(path[:length], line)


def _plain(text: str) -> str:
    """A key's name without its quotes."""
    if text[0] not in "\"'":
        return text
    if "\\" not in text or text[0] == "'":
        return text[1:-1]
    try:
        return str(tomllib.loads(f"name = {text}")["name"])
    except ValueError:
        return text

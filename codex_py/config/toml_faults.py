"""Finds the line of a key in a TOML text, and explains what is wrong with a text that `tomllib` cannot read.

`tomllib` only says where it stopped. The cause is mostly one of a few: text without quotes, a quote that is not closed,
a key set twice, YAML or JSON instead of TOML. For invalid TOML, lines may be wrong, which does no harm.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Final, NamedTuple

from codex_py.config.keys import KeyPath, toml_key

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


_MAX_SHOWN: Final = 120
# No setting that a person mistypes is longer.
_MAX_LINE: Final = 500
_TRUE: Final = ("true", "yes", "on")
_FALSE: Final = ("false", "no", "off")
_NOTHING: Final = ("null", "none", "nil", "undefined")
_CURLY_QUOTES: Final = str.maketrans("“”„‟‘’‚‛", "\"\"\"\"''''")
_SETTING: Final = r"(\s*)([^=\s\[\]{}#:][^=:]*?)\s*(=+|:|(?=[\"']))\s*(.*?)\s*(?=\s#|$)"
_NUMBER: Final = r"[+-]?\d[\d_,]*"
_SECRET: Final = r"(?i)(?<=[_.-])key|token|secret|password|auth|header"
_SECRET_TABLE: Final = r"(?i)^\s*\[.*\b(?:env|http_headers|query_params|set)\]"


class Fault(NamedTuple):
    """Where the mistake is, from 1, what it is, and what to write; `fix` is empty when that cannot be known."""

    line: int
    column: int
    reason: str
    fix: str = ""


def explain(text: str, message: str, line: int, column: int) -> Fault:
    """The mistake behind a message of `tomllib`, which names the line and column where it stopped reading."""
    fault = _find(text, message, line, column)
    headers = [row for row in text.split("\n")[: fault.line] if row.lstrip().startswith("[")]
    hides = bool(headers) and re.match(_SECRET_TABLE, headers[-1]) is not None
    return fault._replace(fix="") if hides and "`" in fault.fix else fault


def _find(text: str, message: str, line: int, column: int) -> Fault:
    where = (line, column)
    if (quote := _open_quote(text)) is not None:
        return quote
    lines = text.split("\n")
    raw = lines[line - 1].rstrip("\r") if line <= len(lines) else ""
    if len(raw) > _MAX_LINE:
        return Fault(*where, message.lower())
    plain = message.lower()
    if "overwrite" in plain or "twice" in plain or "mutate" in plain or "duplicate" in plain:
        return _set_twice(text, *where)
    if "unclosed array" in plain:
        return _open_list(text, *where)
    if "table declaration" in plain:
        return Fault(
            *where, "the `]` of the table's name is missing", _write(raw, f"{raw.split('#')[0].rstrip(' ]')}]")
        )
    if "hex value" in plain or "unescaped" in plain:
        return Fault(*where, 'a `\\` inside "…" starts an escape', _with_literal_text(raw))
    if "illegal character" in plain:
        letter = raw[column - 1 : column]
        return Fault(*where, f"a control character (U+{ord(letter or chr(10)):04X})", "remove it")
    if "initial character for a key" in plain and "{" in raw:
        return _inline_table(raw, *where)
    if raw.lstrip().startswith("{"):
        return Fault(*where, "this looks like JSON, and settings are TOML", 'write lines like `model = "gpt-5.5"`')
    if raw.lstrip().startswith("="):
        return Fault(*where, "there is no key before the `=`", f"write `KEY {raw.strip()}`")
    return _setting(raw, *where) or Fault(*where, plain)


def _setting(raw: str, line: int, column: int) -> Fault | None:
    """Find the fault in a `key = value` line."""
    found = re.match(_SETTING, raw)
    if found is None:
        return Fault(line, column, "there is no `=`", "write settings as `key = value`") if raw.strip() else None
    key, sign, value = found[2], found[3], found[4]
    if sign != "=":
        reason = {":": "a setting is written with `=`, not `:`", "": "the `=` is missing"}.get(
            sign, "one `=` is enough"
        )
        return Fault(line, column, reason, _write(key, f"{key} = {_value(value)}"))
    if re.search(r"\s", key) and key[0] not in "\"'":
        return Fault(line, column, "a key with spaces needs quotes", _write(key, f"{toml_key(key)} = {_value(value)}"))
    if not value:
        return Fault(line, column, f"`{key}` has no value", "write one, or remove the line to use the default")
    if value.translate(_CURLY_QUOTES) != value:
        fixed = f"{key} = {value.translate(_CURLY_QUOTES)}"
        return Fault(line, column, "the quotes must be straight ones", _write(key, fixed))
    if value.lower() in _NOTHING:
        return Fault(line, column, f"TOML has no `{value}`", "remove the line to use the default")
    if re.match(r"[\w.\"'-]+\s*=", raw[column - 1 :].lstrip()):
        return Fault(line, column, "each setting needs a line of its own")
    if value[0] in "\"'":
        return Fault(line, column, f"there is more text after the closing `{value[0]}`", _with_literal_text(raw))
    if value[0] in "[{":
        return None
    if re.match(_NUMBER, value):
        return _number(key, value, line, column)
    reason = "true and false are written in small letters" if value.lower() in _TRUE[:1] + _FALSE[:1] else ""
    reason = reason or ("a switch is `true` or `false`" if _value(value) in ("true", "false") else "text needs quotes")
    return Fault(line, column, reason, _write(key, f"{key} = {_value(value)}"))


def _number(key: str, value: str, line: int, column: int) -> Fault:
    digits = re.sub(r"[_,]", "", value)
    if digits.isdigit():
        return Fault(line, column, "a number is written in digits only", _write(key, f"{key} = {int(digits)}"))
    return Fault(
        line, column, f"`{value}` is not a number", f'write digits only, or text in quotes: `{key} = "{value}"`'
    )


def _value(text: str) -> str:
    """Guess the TOML for a value written by somebody who does not know TOML."""
    text = text.translate(_CURLY_QUOTES)
    lowered = text.lower()
    if lowered in _TRUE + _FALSE:
        return "true" if lowered in _TRUE else "false"
    is_written = text[:1] in "\"'[{" or re.fullmatch(r"[+-]?\d+(\.\d+)?", text)
    return text if is_written else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(key: str, fixed: str) -> str:
    """`write` with the corrected line, without the value of what may be a secret."""
    name, equals, _ = fixed.partition("=")
    shown = f'{name.rstrip()} = "…"' if equals and re.search(_SECRET, key) else fixed.strip()
    return f"write `{shown}`" if len(shown) <= _MAX_SHOWN else ""


def _with_literal_text(raw: str) -> str:
    """The line with its text in the kind of quotes that takes it as it is."""
    found = re.match(_SETTING, raw)
    if found is None:
        return ""
    key, value = found[2], found[4]
    inner = value[1:-1] if len(value) > 1 and value[-1] == value[0] else value[1:]
    quote = '"' if "'" in inner else "'"
    return _write(key, f"{key} = {quote}{inner}{quote}") if quote not in inner and "=" not in inner else ""


def _open_quote(text: str) -> Fault | None:
    """The first quote that is not closed before its line, or for three of them the text, ends."""
    for token in tokens(text):
        mark = token.text[:3] if token.text[:3] in ('"""', "'''") else token.text[:1]
        if mark[:1] not in ("'", '"') or (len(token.text) >= 2 * len(mark) and token.text.endswith(mark)):
            continue
        column = token.start - text.rfind("\n", 0, token.start)
        raw = text.split("\n")[token.line - 1].rstrip("\r")
        found = re.match(_SETTING, raw) if len(raw) <= _MAX_LINE else None
        fix = ""
        if found and len(mark) == 1 and found[4][1:].endswith(mark):
            return Fault(token.line, column, f"a `{mark}` inside {mark}…{mark} ends the text", _with_literal_text(raw))
        if found and len(mark) == 1 and found[4].startswith(mark):
            other = "'\"".replace(mark, "")
            fix = _write(found[2], f"{found[2]} = {mark}{found[4][1:].rstrip(other)}{mark}")
        return Fault(token.line, column, f"the closing `{mark}` is missing", fix)
    return None


def _set_twice(text: str, line: int, column: int) -> Fault:
    path, is_header = path_in_line(text, line)
    name = ".".join(toml_key(str(key)) for key in path)
    first = key_lines(text).get(path)
    where = f" first in line {first}" if first and first != line else ""
    if is_header:
        return Fault(
            line, column, f"the table `[{name}]` is there twice,{where or ' once as a value'}", "keep one header"
        )
    return Fault(line, column, f"`{name}` is set twice,{where or ' once as a table'}", "remove one of the two")


def _open_list(text: str, line: int, column: int) -> Fault:
    """A list without its end, or with two values that no comma stands between."""
    offset = sum(len(row) + 1 for row in text.split("\n")[: line - 1]) + column - 1
    opened: list[Token] = []
    last = after = None
    for token in tokens(text):
        if token.start >= offset and token.text != "\n":
            after = token
            break
        if token.text == "[":
            opened.append(token)
        elif token.text == "]" and opened:
            opened.pop()
        last = token if token.text != "\n" else last
    if after is not None and last is not None and last.text != "," and after.text[0] in "\"'0123456789":
        return Fault(line, column, f"a comma is missing after `{last.text}`", f"write `{last.text}, {after.text}`")
    begin = f" that begins in line {opened[-1].line}" if opened else ""
    return Fault(line, column, f"the `]` of the list{begin} is missing")


def _inline_table(raw: str, line: int, column: int) -> Fault:
    if raw[column - 1 : column] == "}":
        fixed = re.sub(r",\s*}", " }", raw)
        return Fault(line, column, "no comma may stand before `}`", _write(raw.partition("=")[0], fixed))
    return Fault(line, column, "a table in `{ }` stays on one line", "use a `[table]` header for a longer one")

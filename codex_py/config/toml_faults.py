"""What is wrong with a text that is not TOML, and the corrected line. Loaded only to word that error.

`tomllib` says where it stopped reading. What people did there is mostly one of a few things: text without quotes, a
quote that is not closed, a key set twice, YAML or JSON instead of TOML.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.config.keys import toml_key
from codex_py.config.locate import Token, key_lines, path_in_line, tokens

_MAX_SHOWN: Final = 120
# No setting that a person mistypes is longer.
_MAX_LINE: Final = 500
_TRUE: Final = ("true", "yes", "on")
_FALSE: Final = ("false", "no", "off")
_NOTHING: Final = ("null", "none", "nil", "undefined")
_CURLY_QUOTES: Final = str.maketrans("“”„‟‘’‚‛", "\"\"\"\"''''")
_SETTING: Final = re.compile(r"(\s*)([^=\s\[\]{}#:][^=:]*?)\s*(=+|:|(?=[\"']))\s*(.*?)\s*(?=\s#|$)")
_NUMBER: Final = re.compile(r"[+-]?\d[\d_,]*")
_SECRET: Final = re.compile(r"(?<=[_.-])key|token|secret|password|auth|header", re.IGNORECASE)
_SECRET_TABLE: Final = re.compile(r"^\s*\[.*\b(?:env|http_headers|query_params|set)\]", re.IGNORECASE)


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
    hides = bool(headers) and _SECRET_TABLE.match(headers[-1]) is not None
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
    """What is wrong with a `key = value` on one line."""
    found = _SETTING.match(raw)
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
    if _NUMBER.match(value):
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
    """What somebody who does not know TOML meant by a value."""
    text = text.translate(_CURLY_QUOTES)
    lowered = text.lower()
    if lowered in _TRUE + _FALSE:
        return "true" if lowered in _TRUE else "false"
    is_written = text[:1] in "\"'[{" or re.fullmatch(r"[+-]?\d+(\.\d+)?", text)
    return text if is_written else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(key: str, fixed: str) -> str:
    """`write` with the corrected line, without the value of what may be a secret."""
    name, equals, _ = fixed.partition("=")
    shown = f'{name.rstrip()} = "…"' if equals and _SECRET.search(key) else fixed.strip()
    return f"write `{shown}`" if len(shown) <= _MAX_SHOWN else ""


def _with_literal_text(raw: str) -> str:
    """The line with its text in the kind of quotes that takes it as it is."""
    found = _SETTING.match(raw)
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
        found = _SETTING.match(raw) if len(raw) <= _MAX_LINE else None
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

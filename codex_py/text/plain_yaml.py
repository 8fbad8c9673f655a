"""The YAML that nearly every skill is written in, read without a YAML parser: `key: text` lines, one level of nesting.

A parser costs 20 ms to load, before the first request. Whatever is not plainly of this kind is left to it.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

PlainYaml: TypeAlias = "dict[str, str | Plain | dict[str, str | Plain | None] | None]"

_NULLS: Final = frozenset({"null", "Null", "NULL"})
_LINE: Final = r"( *)([A-Za-z_][\w-]*):(?: +(.*?))? *"
_QUOTED: Final = r""""([^"\\]*)"|'([^']*)'"""
# Text that no YAML construct begins with; what would end it early is looked for separately.
_TEXT: Final = r"[A-Za-z0-9_(/.$+].*"
_NO_TEXT: Final = (": ", " #", "\t")


class Plain(str):
    """A scalar written without quotes, where `true` is a boolean and not a word."""

    __slots__ = ()


def read_plain_yaml(text: str) -> PlainYaml | None:
    """The mapping that `text` is, exactly as a YAML parser would give it; None for what should be asked of one."""
    if not text.replace("\n", "").isprintable():
        return None
    line_of, quoted, words = re.compile(_LINE, re.ASCII), re.compile(_QUOTED), re.compile(_TEXT)
    found: PlainYaml = {}
    inner: dict[str, str | Plain | None] | None = None
    depth = 0
    for line in text.split("\n"):
        if not line.strip(" "):
            continue
        match = line_of.fullmatch(line)
        if match is None or match[2] in _NULLS:
            return None
        indent, key, written = len(match[1]), match[2], match[3] or ""
        if indent:
            if inner is None or (inner and indent != depth) or key in inner:
                return None
            depth = indent
            value = _scalar(written, quoted, words)
            if isinstance(value, _Unsure):
                return None
            inner[key] = value
            found[_last(found)] = inner
            continue
        value = _scalar(written, quoted, words)
        if key in found or isinstance(value, _Unsure):
            return None
        found[key] = value
        inner = {} if not written else None
    return found or None


class _Unsure:
    """A value that a YAML parser should look at."""


def _scalar(written: str, quoted: re.Pattern[str], words: re.Pattern[str]) -> str | Plain | _Unsure | None:
    if not written or written in _NULLS:
        return None
    if inside := quoted.fullmatch(written):
        return inside[1] if inside[1] is not None else inside[2]
    if not words.fullmatch(written) or written.endswith(":") or any(sign in written for sign in _NO_TEXT):
        return _Unsure()
    return Plain(written)


def _last(found: PlainYaml) -> str:
    return next(reversed(found))

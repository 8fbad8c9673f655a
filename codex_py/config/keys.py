"""Dotted keys: reading them from a flag and writing them for people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, time
from pathlib import PurePath
from typing import Any, Final, TypeAlias, cast

from codex_py.errors import UsageError
from codex_py.protocol.policy import GranularApproval, approval_payload

KeyPath: TypeAlias = tuple[str | int, ...]

_BARE: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")
_SHORT_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_MAX_SEGMENTS: Final = 16


def dotted(path: KeyPath) -> str:
    """A path as one would write it in TOML; list positions in brackets."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            text += ("." if text else "") + toml_key(key)
    return text


def toml_key(name: str) -> str:
    """A key's name, in quotes when it needs them."""
    return name if name and _BARE.issuperset(name) else _quoted(name)


def toml_value(value: object) -> str:
    """A value as one line of TOML; text that a terminal would act on or hide is escaped."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return str(value) if math.isfinite(value) else str(value).replace("infinity", "inf")
        case str() | PurePath():
            return _quoted(str(value))
        case date() | time():
            return value.isoformat()
        case GranularApproval():
            return toml_value(approval_payload(value))
        case Mapping():
            table = cast("Mapping[str, Any]", value)
            return (
                "{ " + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in table.items()) + " }" if table else "{}"
            )
        case list() | tuple():
            return "[" + ", ".join(toml_value(item) for item in cast("list[Any]", value)) + "]"
        case _:
            return _quoted(str(value))


def parse_key(text: str) -> tuple[str, ...]:
    """The segments of a dotted key; raise `UsageError` for one that is empty or badly quoted."""
    segments: list[str] = []
    position = 0
    while True:
        segment, position = _segment(text, position)
        segments.append(segment)
        if position == len(text):
            break
        if text[position] != ".":
            raise UsageError(
                f"not a key: `{text}`", hint="write dots between names, and quotes round a name that has dots"
            )
        position += 1
    if len(segments) > _MAX_SEGMENTS:
        raise UsageError(f"too many dots in the key `{text[:60]}…`: at most {_MAX_SEGMENTS} names")
    return tuple(segments)


def split_assignment(text: str) -> tuple[str, str] | None:
    """A `key=value` at its first `=` outside quotes; None when there is none."""
    quote = ""
    escaped = False
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and not escaped else quote
            escaped = letter == "\\" and not escaped
        elif letter in "\"'":
            quote = letter
        elif letter == "=":
            return text[:position].strip(), text[position + 1 :]
    return None


def _segment(text: str, position: int) -> tuple[str, int]:
    """One name from `position` on, and where it ends."""
    quote = text[position : position + 1]
    if quote and quote in "\"'":
        return _quoted_segment(text, position + 1, quote)
    end = position
    while end < len(text) and text[end] not in ".\"'":
        end += 1
    name = text[position:end].strip()
    if not name:
        raise UsageError(f"not a key: `{text}`: a name is empty")
    return name, end


def _quoted_segment(text: str, position: int, quote: str) -> tuple[str, int]:
    name = ""
    while position < len(text) and text[position] != quote:
        # Only `\"` and `\\` matter in a path; any other backslash stands for itself.
        if quote == '"' and text[position] == "\\" and text[position + 1 : position + 2] in ('"', "\\"):
            position += 1
        name += text[position]
        position += 1
    if position >= len(text):
        raise UsageError(f"not a key: `{text}`: the quote is not closed")
    return name, position + 1


def _quoted(text: str) -> str:
    return '"' + "".join(_escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[letter]
    if letter.isprintable():
        return letter
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"

"""The arguments of a call in the forms that servers and small models give them, read when there is one reading only."""

from __future__ import annotations

import re
from typing import Any, Final, cast

from codex_py.protocol.encoding import decode_json, decode_or_none, encode_json

_FENCE: Final = r"```[\w-]*\s*(.*?)\s*```"
_TRAILING_COMMA: Final = r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])'
# Marks of a chat template that a server has not taken out: `<|call|>`, `<|im_end|>`.
_TEMPLATE_MARKS: Final = r"^(?:\s*<\|[\w-]{1,40}\|>)+|(?:<\|[\w-]{1,40}\|>\s*)+$"
_EMPTY: Final = r"\s*(?:\{\s*\}|null|\"\")"
# An argument that is encoded more often than this is not meant to be read.
_MAX_DEPTH: Final = 4


def readable_arguments(text: str) -> str:
    """The arguments of a call as the text of a JSON object, where exactly one can be read; else as they came."""
    if not text.strip() or _as_dict(decode_or_none(text)) is not None:
        return text
    try:
        found = read_object(text)
        return text if found is None else encode_json(found).decode()
    except ValueError:
        # A number that no JSON of ours could send back.
        return text


def read_object(text: str, depth: int = _MAX_DEPTH) -> dict[str, Any] | None:
    """The one JSON object that a text can mean; None where there is none or more than one.

    Read are objects that are encoded twice, in a code fence, with commas before a closing bracket, repeated, or with
    `{}`, `null` or marks of a chat template beside them.
    """
    text = re.sub(_TEMPLATE_MARKS, "", text).strip()
    if depth == 0 or not text:
        return None
    if fenced := re.fullmatch(_FENCE, text, re.DOTALL):
        return read_object(fenced[1], depth - 1)
    for candidate in dict.fromkeys((text, re.sub(_TRAILING_COMMA, lambda found: found[1] or "", text))):
        try:
            value = decode_json(candidate)
        except ValueError:
            if (values := _sequence(candidate)) and len(values) == 1:
                return values[0]
            continue
        return read_object(value, depth - 1) if isinstance(value, str) else _as_dict(value)
    return None


def _sequence(text: str) -> list[dict[str, Any]]:
    """The different objects that stand one behind the other, without the empty ones beside others; empty for no such
    text.
    """
    found: list[dict[str, Any]] = []
    empty = False
    while text:
        if blank := re.match(_EMPTY, text):
            empty, text = True, text[blank.end() :].lstrip()
            continue
        end = _end_of_object(text)
        value = None if end == 0 else _as_dict(decode_or_none(text[:end]))
        if value is None:
            return []
        found += [value] if value not in found else []
        text = text[end:].lstrip()
    return found or ([{}] if empty else [])


def _end_of_object(text: str) -> int:
    """Where the object that a text begins with ends; 0 if it begins with none."""
    depth = 0
    for mark in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}]', text) if text.startswith("{") else ():
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return 0


def _as_dict(value: Any) -> dict[str, Any] | None:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None

"""Why a file could not be used, in the words and tone of our own messages."""

from __future__ import annotations

import json
from typing import Final

# What Python's reader calls things.
_JSON_WORDS: Final = {
    "Expecting property name enclosed in double quotes": 'expected a key in "…"',
    "Expecting value": "expected a value",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Illegal trailing comma before end of object": "no comma may stand before `}`",
    "Illegal trailing comma before end of array": "no comma may stand before `]`",
    "Extra data": "there is more text behind its end",
}


def os_reason(error: OSError) -> str:
    """What the system says about a failure."""
    return (error.strerror or str(error)).lower()


def json_reason(error: ValueError) -> str:
    """Where a text stops being JSON, and why."""
    if isinstance(error, json.JSONDecodeError):
        if not error.doc.strip():
            return "it is empty"
        return f"line {error.lineno} column {error.colno}: {_JSON_WORDS.get(error.msg, error.msg.lower())}"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)

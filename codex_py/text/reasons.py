"""Why a file could not be used, in the words and tone of our own messages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Final, cast

# What Python's reader calls things.
_JSON_WORDS: Final = {
    "Expecting property name enclosed in double quotes": 'expected a key in "…"',
    "Expecting value": "expected a value",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Illegal trailing comma before end of object": "no comma may stand before `}`",
    "Illegal trailing comma before end of array": "no comma may stand before `]`",
    "Extra data": "there is more text after its end",
}


def os_reason(error: OSError) -> str:
    """What the system says about a failure."""
    return (error.strerror or str(error)).lower()


def system_error(error: BaseException) -> OSError | None:
    """What the operating system or TLS reported below the layers of a library, if anything."""
    found = None
    for cause in _causes(error):
        if isinstance(cause, OSError):
            found = cause
    return found


def system_reason(error: OSError) -> str:
    """The system's own words for an error that a library has worded differently."""
    # asyncio has words of its own; errors of a name look-up have negative numbers.
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if isinstance(error, BaseExceptionGroup):
            # One attempt an address; the last is the one that other programs report.
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[-1]
        if error is None:
            return
        yield error
        # httpcore cuts the causes of its errors; what they came from is still their context.
        error = error.__cause__ or error.__context__


def json_reason(error: ValueError) -> str:
    """Where a text stops being JSON, and why."""
    if isinstance(error, json.JSONDecodeError):
        if not error.doc.strip():
            return "it is empty"
        return f"line {error.lineno} column {error.colno}: {_JSON_WORDS.get(error.msg, error.msg.lower())}"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)

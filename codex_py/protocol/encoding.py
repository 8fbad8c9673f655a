"""How values stand on the wire and on disk: the one JSON encoding, identifiers, and time stamps."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Final, cast


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


# Made once: `json.dumps` and `json.loads` with options build an encoder, a decoder, for every call.
_PLAIN: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ESCAPED: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def encode_json(value: Any) -> bytes:
    """Compact UTF-8 JSON on one line, keys in the order given.

    A lone surrogate, which JSON text may carry as an escape and UTF-8 may not, is kept as that escape. Raises
    `ValueError` for a number too large for a float, which JSON may write and we could not.
    """
    try:
        return _PLAIN.encode(value).encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(value).encode()


def decode_json(raw: bytes | str) -> Any:
    """Read JSON from outside; raise `ValueError` for what is not JSON, `NaN` and `Infinity` included."""
    text = raw if isinstance(raw, str) else raw.decode(_encoding_of(raw), "surrogatepass")
    try:
        return _decode_text(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def decode_or_none(raw: bytes | str) -> Any:
    """Read JSON from outside; None for what is not JSON."""
    try:
        return decode_json(raw)
    except ValueError:
        return None


def _decode_text(text: str) -> Any:
    # `decode` looks for spaces around the value with two regular expressions, and a session has many short lines.
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        return _DECODER.decode(text)
    return value if end == len(text) or text[end:] == "\n" else _DECODER.decode(text)


def _encoding_of(raw: bytes) -> str:
    """As `json.loads` finds it, which most often is to be seen at once."""
    return "utf-8" if raw.startswith(b'{"') else json.detect_encoding(raw)


def as_object(value: object) -> dict[str, Any]:
    """A decoded JSON value as an object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A decoded JSON value as an array; anything else counts as an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


_UUID_CHARACTERS: Final = frozenset("0123456789abcdef-")


def uuid7(now_ms: int | None = None) -> str:
    """A new UUID of version 7 (RFC 9562): 48 bits of Unix milliseconds, then random bits; lower case with hyphens.

    Ids made in different milliseconds sort by time; within one millisecond their order is random.
    """
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random = int.from_bytes(os.urandom(10))
    value = (moment & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in the form this program writes: lower case, hyphens, nothing around it."""
    has_hyphens = text.count("-") == 4 and text[8:24:5] == "----"
    return len(text) == 36 and has_hyphens and _UUID_CHARACTERS.issuperset(text)


def timestamp(now: float | None = None) -> str:
    """A moment in seconds since the epoch (default: now) as `2026-01-31T09:15:00.250Z`, always UTC and milliseconds."""
    moment_ms = time.time_ns() // 1_000_000 if now is None else int(now * 1000)
    seconds, milliseconds = divmod(moment_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z"

"""The one JSON encoding of everything that goes to the provider or to disk."""

from __future__ import annotations

import json
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
    try:
        return _DECODER.decode(raw) if isinstance(raw, str) else json.loads(raw, parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def as_object(value: object) -> dict[str, Any]:
    """A decoded JSON value as an object; anything else counts as an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """A decoded JSON value as an array; anything else counts as an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []

"""Pictures for a model that cannot see or has refused one: on every wire a line of text stands in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

NO_PICTURE: Final = "[a picture that you cannot see]"
PICTURES_REFUSED: Final = "`{}` is shown no more pictures, because its server has refused one: {}"
_MARK: Final = b'"input_image"'
# Some local servers answer 500 to what a model does not take, and OpenRouter 404.
_STATUSES: Final = frozenset({400, 404, 413, 415, 422, 500, 501})
# A server that takes no parts at all asks for a string.
_WORDS: Final = r"(?i)image|picture|vision|multi-?modal|(?:must|should) be a (?:valid )?string"


def has_picture(items: Iterable[bytes]) -> bool:
    """Whether there is a picture in the encoded items of a history."""
    return any(_MARK in item for item in items)


def may_refuse_picture(status: int, message: str) -> bool:
    """Whether a server may have refused a request for a picture in it: no model can see there, or not this picture."""
    return status in _STATUSES and re.search(_WORDS, message) is not None


def without_pictures(encoded: bytes) -> bytes:
    """An encoded item with a line of text in place of each picture; the same bytes where there is none."""
    if _MARK not in encoded:
        return encoded
    try:
        value = as_object(decode_json(encoded))
    except ValueError:
        return encoded
    for key in ("content", "output"):
        if parts := as_list(value.get(key)):
            value[key] = [_shown(part) for part in parts]
    return encode_json(value)


def _shown(part: object) -> Any:
    is_picture = as_object(part).get("type") == "input_image"
    return {"type": "input_text", "text": NO_PICTURE} if is_picture else part

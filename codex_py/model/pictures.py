"""Pictures for a model that cannot see or has refused one: on every wire a line of text stands in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json

NO_PICTURE: Final = "[a picture that you cannot see]"
PICTURE_REFUSED: Final = "a picture is left out of this session, because the server has refused it: {}"
PICTURES_REFUSED: Final = "`{}` is shown no more pictures, because its server has refused one: {}"
_MARK: Final = b'"input_image"'
# Some local servers answer 500 to what a model does not take, and OpenRouter 404.
_STATUSES: Final = frozenset({400, 404, 413, 415, 422, 500, 501})
# A server that takes no parts at all asks for a string.
_WORDS: Final = r"(?i)image|picture|vision|multi-?modal|(?:must|should) be a (?:valid )?string"
# The model sees no picture at all, whichever it is.
_BLIND: Final = r"(?i)no image|support|multi-?modal|mmproj|vision|unknown variant|be a (?:valid )?string|at most 0"
# These are about one picture, though they may speak of support.
_ABOUT_ONE: Final = (
    r"(?i)(?:unsupported|invalid) (?:image|media|picture)|(?:image|media|file|picture) (?:type|format)"
    r"|supported (?:\w+ )?(?:types|formats)"
)
_MAX_TRIALS: Final = 8


def has_picture(items: Iterable[bytes]) -> bool:
    """Whether there is a picture in the encoded items of a history."""
    return any(_MARK in item for item in items)


def may_refuse_picture(status: int, message: str) -> bool:
    """Whether a server may have refused a request for a picture in it: no model can see there, or not this picture."""
    return status in _STATUSES and re.search(_WORDS, message) is not None


def pictures_in(items: Iterable[bytes]) -> list[str]:
    """The addresses of the pictures in encoded items, each once, in order."""
    parts = [
        as_object(part)
        for item in items
        if _MARK in item
        for key in ("content", "output")
        for part in as_list(as_object(decode_json(item)).get(key))
    ]
    return list(dict.fromkeys(str(part.get("image_url")) for part in parts if part.get("type") == "input_image"))


def to_leave_out(message: str, items: Sequence[bytes], named: Sequence[int]) -> list[frozenset[str] | None]:
    """The pictures to leave out after a refusal, one try after the other: single ones first, None for all of them.

    `named` are the items that the refusal names. Else the newest picture comes first: the server took those before it.
    """
    pictures = pictures_in(items)
    if re.search(_BLIND, message) and not re.search(_ABOUT_ONE, message):
        return [None]
    first = pictures_in(items[index] for index in named)
    order = dict.fromkeys([*reversed(first), *reversed(pictures)])
    single = [frozenset({picture}) for picture in order][:_MAX_TRIALS]
    return [*single, *([None] if len(pictures) > 1 else [])]


def without_pictures(encoded: bytes, only: Collection[str] | None = None) -> bytes:
    """An encoded item with a line of text in place of each picture, or of those `only`; the same bytes where there is
    none."""
    if _MARK not in encoded or (only is not None and not any(url in only for url in pictures_in([encoded]))):
        return encoded
    try:
        value = as_object(decode_json(encoded))
    except ValueError:
        return encoded
    for key in ("content", "output"):
        if parts := as_list(value.get(key)):
            value[key] = [_shown(part, only) for part in parts]
    return encode_json(value)


def _shown(part: object, only: Collection[str] | None) -> Any:
    fields = as_object(part)
    is_picture = fields.get("type") == "input_image" and (only is None or str(fields.get("image_url")) in only)
    return {"type": "input_text", "text": NO_PICTURE} if is_picture else part

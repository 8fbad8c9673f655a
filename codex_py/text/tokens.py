"""Token estimates where the server's own count is not at hand."""

from __future__ import annotations

from typing import Final

# What a picture counts: models read it in tiles, however long its text form is.
PICTURE_BYTES: Final = 6000
_PICTURE: Final = b'"data:image/'


def estimate_tokens(byte_count: int) -> int:
    """About how many tokens `byte_count` bytes of UTF-8 are: four bytes a token, rounded up."""
    return -(-byte_count // 4)


def estimate_text_tokens(text: str) -> int:
    """`estimate_tokens` of a text's UTF-8 bytes."""
    return estimate_tokens(len(text.encode("utf-8", "surrogatepass")))


def counted_bytes(encoded: bytes) -> int:
    """The bytes of an encoded item as far as they become tokens: a picture within counts `PICTURE_BYTES`."""
    start = encoded.find(_PICTURE)
    if start < 0:
        return len(encoded)
    size = len(encoded)
    while start >= 0:
        # In JSON a quote inside the text would be escaped, and base64 has none.
        end = encoded.find(b'"', start + 1)
        end = len(encoded) if end < 0 else end
        size += PICTURE_BYTES - (end - start)
        start = encoded.find(_PICTURE, end)
    return size

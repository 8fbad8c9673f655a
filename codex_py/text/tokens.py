"""Token estimates where the server's own count is not at hand, and texts cut to a number of tokens."""

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


BYTES_PER_TOKEN = 4


def truncate_middle(text: str, limit: int, *, token_count: int | None = None) -> str:
    """`text` with its middle replaced by `…K tokens truncated…` when it is longer than `limit` tokens.

    Head and tail get half the budget each (4 bytes a token) and are cut between characters. `token_count` is the
    length to count the loss against when `text` itself has lost something before.
    """
    limit = max(limit, 0)
    raw = text.encode("utf-8", "replace")
    budget = limit * BYTES_PER_TOKEN
    if len(raw) <= budget:
        return text
    lost = (estimate_tokens(len(raw)) if token_count is None else token_count) - limit
    half = budget // 2
    return f"{_head(raw, half)}…{lost} tokens truncated…{_tail(raw, half)}"


def count_lines(text: str) -> int:
    """Lines in `text`; the last one counts with or without a newline at its end."""
    return text.count("\n") + (not text.endswith("\n") if text else 0)


def _head(raw: bytes, size: int) -> str:
    while size and size < len(raw) and raw[size] & 0xC0 == 0x80:
        size -= 1
    return raw[:size].decode()


def _tail(raw: bytes, size: int) -> str:
    start = len(raw) - size
    while start < len(raw) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:].decode()

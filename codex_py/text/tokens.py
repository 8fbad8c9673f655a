"""Token estimates where the server's own count is not at hand."""

from __future__ import annotations


def estimate_tokens(byte_count: int) -> int:
    """About how many tokens `byte_count` bytes of UTF-8 are: four bytes a token, rounded up."""
    return -(-byte_count // 4)


def estimate_text_tokens(text: str) -> int:
    """`estimate_tokens` of a text's UTF-8 bytes."""
    return estimate_tokens(len(text.encode("utf-8", "surrogatepass")))

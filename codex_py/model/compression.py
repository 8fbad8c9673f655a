"""Compressed request bodies, which the back end of ChatGPT logins takes."""

from __future__ import annotations

import zstandard


def compress(body: bytes) -> bytes:
    """The body as one zstd frame."""
    return zstandard.ZstdCompressor().compress(body)

"""Compression by zstd: the standard library's from Python 3.14 on, and its backport before."""

from __future__ import annotations

import sys
from typing import BinaryIO, Final, cast

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    import backports.zstd as zstd

COMPRESSION_ERRORS: Final = (zstd.ZstdError, EOFError)
"""Raised by `unpack` and the streams of `open_packed` for content that is damaged or ends too early."""

_FASTEST: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}


def pack(content: bytes) -> bytes:
    """Compress as a frame with its size and checksum, quickly rather than well."""
    return zstd.compress(content, options=_FASTEST)


def unpack(packed: bytes, max_bytes: int) -> bytes:
    """The content of a frame. Raises `COMPRESSION_ERRORS`, also for more than `max_bytes`."""
    decompressor = zstd.ZstdDecompressor()
    content = decompressor.decompress(packed, max_bytes)
    if not decompressor.eof:
        raise EOFError
    return content


def open_packed(file: BinaryIO) -> BinaryIO:
    """Read the content of a file of frames. Raises `COMPRESSION_ERRORS` while it is read."""
    return cast("BinaryIO", zstd.ZstdFile(file))

"""PNG pictures with damage beside the picture itself, as programs that shrink them leave behind."""

from __future__ import annotations

import struct
import zlib
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_AROUND: Final = 12


def mended_png(raw: bytes) -> bytes:
    """The file without those parts that are not needed to draw it and whose checksum is wrong; others as they are."""
    if not raw.startswith(_SIGNATURE):
        return raw
    chunks = [_SIGNATURE]
    position = len(_SIGNATURE)
    while position + _AROUND <= len(raw):
        (size,) = struct.unpack_from(">I", raw, position)
        chunk = raw[position : position + _AROUND + size]
        position += _AROUND + size
        # A small first letter marks what a reader may skip.
        is_extra = chunk[4:5].islower()
        if not is_extra or zlib.crc32(chunk[4:-4]) == int.from_bytes(chunk[-4:]):
            chunks.append(chunk)
    return b"".join(chunks)

"""The submodules in a repository's index, which a commit may name without a `.gitmodules` file.

Reads no more of git's index format (gitformat-index) than that takes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_SIGNATURE: Final = b"DIRC"
_VERSIONS: Final = (2, 3, 4)
_MODE: Final = 0o160000
_HEADER: Final = struct.Struct(">4sII")
_NUMBER: Final = struct.Struct(">I")
_FLAGS: Final = struct.Struct(">H")
_MODE_OFFSET: Final = 24
_EXTENDED: Final = 0x4000


def read_gitlinks(index: bytes, *, hash_bytes: int = 20) -> list[bytes]:
    """The paths of the submodules in an index; those before the first fault in a broken one."""
    if _NUMBER.pack(_MODE) not in index:  # almost every index: not worth parsing
        return []
    found: list[bytes] = []
    with suppress(struct.error, ValueError, IndexError):
        for path, mode in _entries(index, hash_bytes):
            if mode == _MODE:
                found.append(path)
    return found


def _entries(index: bytes, hash_bytes: int) -> Iterator[tuple[bytes, int]]:
    signature, version, count = _HEADER.unpack_from(index)
    if signature != _SIGNATURE or version not in _VERSIONS:
        return
    start, path = _HEADER.size, b""
    for _ in range(count):
        flags = start + _MODE_OFFSET + 16 + hash_bytes
        name = flags + (4 if _FLAGS.unpack_from(index, flags)[0] & _EXTENDED else 2)
        shared = b""
        if version == 4:
            stripped, name = _offset(index, name)
            shared = path[: len(path) - stripped]
        end = index.index(b"\0", name)
        path = shared + index[name:end]
        yield path, _NUMBER.unpack_from(index, start + _MODE_OFFSET)[0]
        # Up to version 3, entries are padded to a multiple of eight bytes.
        start = end + 1 if version == 4 else start + ((end - start + 8) & ~7)


def _offset(index: bytes, start: int) -> tuple[int, int]:
    """A number in the variable width encoding of offsets in packs, and where it ends."""
    byte = index[start]
    number = byte & 0x7F
    while byte & 0x80:
        start += 1
        byte = index[start]
        number = ((number + 1) << 7) | (byte & 0x7F)
    return number, start + 1

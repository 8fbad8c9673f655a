"""Files of our own that are only a cache: whole and of the expected kind, or as good as not there."""

from __future__ import annotations

import os
import zlib
from contextlib import suppress
from pathlib import Path

from codex_py.paths import make_private_dir, open_private


def load_checked(path: Path, format_name: bytes, *, max_bytes: int) -> bytes | None:
    """What `save_checked` wrote as `format_name`; None for a file that is missing, damaged, larger or another's."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError:
        return None
    header, _, body = raw.partition(b"\n")
    return body if header == _header(format_name, body) else None


def save_checked(path: Path, format_name: bytes, body: bytes, *, max_bytes: int) -> None:
    """Write a file, 0600, whole or not at all; what is too large or cannot be written is not kept."""
    header = _header(format_name, body)
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    if len(header) + 1 + len(body) > max_bytes:
        return
    try:
        make_private_dir(path.parent)
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(b"%s\n%s" % (header, body))
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _header(format_name: bytes, body: bytes) -> bytes:
    return b"%s %08x" % (format_name, zlib.crc32(body))

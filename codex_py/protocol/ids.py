"""Identifiers and time stamps as they stand on the wire and on disk."""

from __future__ import annotations

import os
import re
import time

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def uuid7(now_ms: int | None = None) -> str:
    """A new UUID of version 7 (RFC 9562): 48 bits of Unix milliseconds, then random bits; lower case with hyphens.

    Ids made in different milliseconds sort by time; within one millisecond their order is random.
    """
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    random = int.from_bytes(os.urandom(10))
    value = (moment & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID in the form this program writes: lower case, hyphens, nothing around it."""
    return _UUID.fullmatch(text) is not None


def timestamp(now: float | None = None) -> str:
    """A moment in seconds since the epoch (default: now) as `2026-01-31T09:15:00.250Z`, always UTC and milliseconds."""
    moment_ms = time.time_ns() // 1_000_000 if now is None else int(now * 1000)
    seconds, milliseconds = divmod(moment_ms, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{milliseconds:03d}Z"

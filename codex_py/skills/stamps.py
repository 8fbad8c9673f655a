"""Whether files and folders are as they were when they were read, checked by one `stat` each."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Final, TypeAlias

# Times of the last change and of the last write in nanoseconds, size, inode; None for what is not there.
Stamp: TypeAlias = tuple[int, int, int, int] | None

NEVER: Final[Stamp] = (0, 0, 0, 0)
# A file written again within one tick of the file system's clock keeps its time stamp.
_TICK_NS: Final = 20_000_000


def stamp(path: str) -> Stamp:
    """The stamp of what is about to be read; links are followed.

    For what was written this very moment it is `NEVER`, which equals no later stamp: another write may follow unseen.
    """
    found = _stat(path)
    return NEVER if found and time.time_ns() - max(found[:2]) < _TICK_NS else found


def are_current(stamps: Mapping[str, Stamp]) -> bool:
    """Whether everything still has the stamp it had."""
    return all(_stat(path) == known for path, known in stamps.items())


def _stat(path: str) -> Stamp:
    try:
        # Thousands of these come before the first request, and a `Path` costs more than the call.
        status = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return None
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino

"""Follows protected paths that move.

A mount protects `sub/.git` during one command, but not the name `sub`: a command may rename that, and the next one
would find `.git` at an unprotected path. So protected paths are held open, and the kernel tells where they are now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_O_PATH: Final = getattr(os, "O_PATH", 0)
_DELETED: Final = " (deleted)"


class Pins:
    """Paths held open for as long as this object lives; nothing is held where the system cannot tell names (macOS)."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._fds: list[int] = []
        self._held: set[tuple[int, int]] = set()
        self.add(paths)

    def add(self, paths: Iterable[Path]) -> None:
        """Hold these as well, each once."""
        if not _O_PATH:
            return
        for path in paths:
            try:
                status = os.lstat(path)
                if (status.st_dev, status.st_ino) in self._held:
                    continue
                fd = os.open(path, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # missing ones are protected by name
            status = os.fstat(fd)
            self._held.add((status.st_dev, status.st_ino))
            self._fds.append(fd)

    def holds(self, path: Path) -> bool:
        """Whether what is at this path now is held."""
        try:
            status = os.lstat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) in self._held

    def __del__(self) -> None:
        for fd in self._fds:
            os.close(fd)

    def paths(self) -> list[Path]:
        """Where those that still exist are now."""
        links = [os.readlink(f"/proc/self/fd/{fd}") for fd in self._fds]  # noqa: PTH115 - a name, not a path to follow
        return [Path(link) for link in links if link.startswith("/") and not link.endswith(_DELETED)]

"""Reading files nobody vouches for: regular files only, inside a project where that is asked, within a size.

A link to a secret, a FIFO or a device must neither reach the model nor block the start.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import CodexError
from codex_py.paths import real_path

_DIRECTORY: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_CHUNK_BYTES: Final = 1024 * 1024
_FILE: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


class FileRefused(CodexError):
    """The file is there and is not read; the message says why."""


class FileHead(NamedTuple):
    """The first bytes of a file, and how many bytes it has."""

    raw: bytes
    size: int


def read_inside(root: Path, path: Path | str, max_bytes: int) -> FileHead | None:
    """The beginning of `path` when its real path is below `root`, itself a real path; None when there is no such file.

    Links that stay inside work, except into `.git`, where remotes keep passwords. Raises `FileRefused`.
    """
    top, name = f"{str(root).rstrip('/')}/", os.fspath(path)
    if not os.path.lexists(name):
        return None
    # Most paths have no link in them, and finding the real path is most of what this would cost.
    with suppress(OSError, FileRefused):
        if name.startswith(top) and ".." not in name:
            return _read_below(root, name.removeprefix(top), max_bytes)
    real = real_path(name)
    if not real.startswith(top):
        raise FileRefused("a link that leads out of the project")
    try:
        return _read_below(root, real.removeprefix(top), max_bytes)
    except OSError as error:
        raise FileRefused(error.strerror or str(error)) from error


def read_trusted(path: Path | str, max_bytes: int) -> FileHead | None:
    """The beginning of a regular file of the user's own, links followed; None when there is no such file.

    Raises `FileRefused`.
    """
    if not os.path.lexists(path):
        return None
    try:
        # A start may read thousands, and a `Path` costs more than the call.
        _require_regular(os.stat(path))  # noqa: PTH116
        return _read(os.open(path, _FILE), max_bytes)
    except OSError as error:
        raise FileRefused(error.strerror or str(error)) from error


def _read_below(root: Path, relative: str, max_bytes: int) -> FileHead:
    """Open folder by folder without following links, so that nothing can be swapped in between."""
    inside = relative.split("/")
    if ".git" in inside:
        raise FileRefused("a link to what is no part of the project's files")
    directory = os.open(root, _DIRECTORY)
    try:
        for name in inside[:-1]:
            parent, directory = directory, os.open(name, _DIRECTORY, dir_fd=directory)
            os.close(parent)
        _require_regular(os.stat(inside[-1], dir_fd=directory, follow_symlinks=False))
        return _read(os.open(inside[-1], _FILE | os.O_NOFOLLOW, dir_fd=directory), max_bytes)
    finally:
        os.close(directory)


def _require_regular(status: os.stat_result) -> None:
    """Before opening, because opening some devices has effects; and again on what was opened."""
    if not stat.S_ISREG(status.st_mode):
        raise FileRefused("not a regular file")


def _read(descriptor: int, max_bytes: int) -> FileHead:
    try:
        status = os.fstat(descriptor)
        _require_regular(status)
        chunks: list[bytes] = []
        left = max_bytes
        while left > 0 and (chunk := os.read(descriptor, min(left, _CHUNK_BYTES))):
            chunks.append(chunk)
            left -= len(chunk)
    finally:
        os.close(descriptor)
    return FileHead(b"".join(chunks), max(status.st_size, max_bytes - left))

"""Untrusted files read within limits: regular files, caches, JSONL lines; why one could not be used, in words.

A link to a secret, a FIFO or a device must neither reach the model nor block the start.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from codex_py.errors import CodexError
from codex_py.paths import make_private_dir, real_path
from codex_py.replace_file import replace_file

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
            return read_below(root, name.removeprefix(top), max_bytes)
    real = real_path(name)
    if not real.startswith(top):
        raise FileRefused("a link that leads out of the project")
    try:
        return read_below(root, real.removeprefix(top), max_bytes)
    except OSError as error:
        raise FileRefused(error.strerror or str(error)) from error


def read_below(root: Path, relative: str, max_bytes: int) -> FileHead:
    """The beginning of a regular file, opened directory by directory without following links, so that nothing can be
    swapped in between. Raises `OSError` and `FileRefused`.
    """
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


def load_checked(path: Path, format_name: bytes, *, max_bytes: int) -> bytes | None:
    """Read a file written by `save_checked` as `format_name`; None if missing, damaged, too large or different."""
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
    if len(header) + 1 + len(body) > max_bytes:
        return
    with suppress(OSError):
        make_private_dir(path.parent)
        replace_file(path, b"%s\n%s" % (header, body))


def _header(format_name: bytes, body: bytes) -> bytes:
    return b"%s %08x" % (format_name, zlib.crc32(body))


_BLOCK = 64 * 1024


def read_lines(stream: BinaryIO, *, limit: int) -> Iterator[bytes]:
    """The lines of a file, each with its newline; only the last one can lack it.

    A line of more than `limit` bytes is cut to its first `limit` bytes, and the rest of it is skipped.
    """
    while line := stream.readline(limit):
        end = line
        while end and not end.endswith(b"\n") and len(line) == limit:
            end = stream.readline(_BLOCK)
        yield line + b"\n" if end is not line and end else line


def read_lines_backwards(descriptor: int, *, limit: int) -> Iterator[bytes]:
    """The lines of a regular file from the last to the first, without newlines and without empty ones.

    A line of more than `limit` bytes may be cut to some part at its start that is at least `limit` bytes long.
    """
    position = os.fstat(descriptor).st_size
    # The pieces of the line being collected, the one nearest to its start last.
    pieces: list[bytes] = []
    held = 0
    while position > 0:
        start = max(0, position - _BLOCK)
        block = os.pread(descriptor, position - start, start)
        position = start
        head, *lines = block.split(b"\n")
        if lines:
            if last := lines.pop() + b"".join(reversed(pieces)):
                yield last
            yield from (line for line in reversed(lines) if line)
            pieces, held = [], 0
        pieces.append(head)
        held += len(head)
        if held > 2 * (limit + _BLOCK):
            pieces = pieces[len(pieces) // 2 :]
            held = sum(map(len, pieces))
    if first := b"".join(reversed(pieces)):
        yield first


# What Python's reader calls things.
_JSON_WORDS: Final = {
    "Expecting property name enclosed in double quotes": 'expected a key in "…"',
    "Expecting value": "expected a value",
    "Expecting ',' delimiter": "a comma is missing",
    "Expecting ':' delimiter": "a colon is missing",
    "Illegal trailing comma before end of object": "no comma may stand before `}`",
    "Illegal trailing comma before end of array": "no comma may stand before `]`",
    "Extra data": "there is more text after its end",
}


def os_reason(error: OSError) -> str:
    """The system's reason for a failure, in lower case."""
    return (error.strerror or str(error)).lower()


def system_error(error: BaseException) -> OSError | None:
    """The error that the operating system or TLS reported below the layers of a library, if any."""
    found = None
    for cause in _causes(error):
        if isinstance(cause, OSError):
            found = cause
    return found


def system_reason(error: OSError) -> str:
    """The system's own words for an error that a library has worded differently."""
    # asyncio has words of its own; errors of a name look-up have negative numbers.
    number = error.errno or 0
    return (os.strerror(number) if number > 0 else error.strerror or str(error)).lower()


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(20):
        if isinstance(error, BaseExceptionGroup):
            # One attempt an address; the last is the one that other programs report.
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[-1]
        if error is None:
            return
        yield error
        # httpcore cuts the causes of its errors; what they came from is still their context.
        error = error.__cause__ or error.__context__


def json_reason(error: ValueError) -> str:
    """Where a text stops being JSON, and why."""
    if isinstance(error, json.JSONDecodeError):
        if not error.doc.strip():
            return "it is empty"
        return f"line {error.lineno} column {error.colno}: {_JSON_WORDS.get(error.msg, error.msg.lower())}"
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)

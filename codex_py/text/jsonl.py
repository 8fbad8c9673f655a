"""Lines of JSONL files, from the front and from the back, in bounded memory whatever the file holds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

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

"""Where the last compaction of a file is: the items before it are not sent again and need not be held."""

from __future__ import annotations

import os
from typing import BinaryIO, Final

from codex_py.protocol.encoding import as_list
from codex_py.rollout.lines import decode_record

# In any other layout a compaction is not found here, and the whole file is read: slower, and with the same outcome.
_MARK: Final = b',"type":"compacted","payload":'
_BLOCK: Final = 4 * 1024 * 1024
# The most that stands before the mark in its line.
_HEAD_BYTES: Final = 100


def last_compaction(stream: BinaryIO, *, max_line: int, before: int | None = None) -> int:
    """The offset of the line that tells the last compaction with an ordinal below `before`, or 0.

    Only a whole record counts that says what the history was replaced by. The stream's position is left alone.
    """
    descriptor = stream.fileno()
    end = os.fstat(descriptor).st_size
    while (at := _last_mark(descriptor, end)) >= 0:
        begin = max(0, at - _HEAD_BYTES)
        start = begin + os.pread(descriptor, at - begin, begin).rfind(b"\n") + 1
        if _replaces(_line_at(descriptor, start, max_line), before):
            return start
        end = at
    return 0


def _last_mark(descriptor: int, end: int) -> int:
    """The offset of the last mark that ends below `end`, or -1."""
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(_MARK)
        if found >= 0:
            return start + found
        # A mark may lie across two blocks.
        end = start + len(_MARK) - 1 if start else 0
    return -1


def _line_at(descriptor: int, start: int, max_line: int) -> bytes:
    pieces: list[bytes] = []
    while sum(map(len, pieces)) < max_line and (piece := os.pread(descriptor, _BLOCK, start)):
        line, newline, _ = piece.partition(b"\n")
        pieces.append(line + newline)
        if newline:
            break
        start += len(piece)
    return b"".join(pieces)


def _replaces(line: bytes, before: int | None) -> bool:
    record = decode_record(line, 0) if line.endswith(b"}\n") else None
    if record is None or record.record_type != "compacted" or (before is not None and record.ordinal >= before):
        return False
    return bool(as_list(record.payload.get("replacement_history")))

"""Loads the state that the next turn needs from a stored session, from its last compaction on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from codex_py.protocol.encoding import as_list
from codex_py.protocol.origin import with_origins
from codex_py.rollout.format import StoredSession
from codex_py.rollout.records import (
    MAX_LINE,
    ancestors,
    decode_record,
    history_lines,
    is_live,
    live_ranges,
    lower,
    open_stored,
    ordinal_of,
    read_head,
    read_meta,
)
from codex_py.rollout.replay import Replay
from codex_py.text.display import counted
from codex_py.text.files import read_lines

# In any other layout a compaction is not found here, and the whole file is read: slower, and with the same outcome.
_MARK: Final = b',"type":"compacted","payload":'
_BLOCK: Final = 4 * 1024 * 1024
# The most that stands before the mark in its line.
_HEAD_BYTES: Final = 100


def last_compaction(stream: BinaryIO, *, max_line: int, before: int | None = None) -> int:
    """The offset of the line with the last compaction whose ordinal is below `before`, or 0.

    Only a whole record with a replacement history counts. The stream's position does not change.
    """
    descriptor = stream.fileno()
    end = os.fstat(descriptor).st_size
    for at in _marks_backwards(descriptor, end):
        begin = max(0, at - _HEAD_BYTES)
        newline = os.pread(descriptor, at - begin, begin).rfind(b"\n")
        # A damaged line can have thousands of marks, and must not be read again for each.
        if newline >= 0 and _replaces(_line_at(descriptor, begin + newline + 1, max_line), before):
            return begin + newline + 1
    return 0


def _marks_backwards(descriptor: int, end: int) -> Iterator[int]:
    """The offsets of all marks, the last one first."""
    while end > 0:
        start = max(0, end - _BLOCK)
        block = os.pread(descriptor, end - start, start)
        found = len(block)
        while (found := block.rfind(_MARK, 0, found)) >= 0:
            yield start + found
        # A mark may lie across two blocks.
        end = start + len(_MARK) - 1 if start else 0


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


def load_session(path: Path, *, before: int | None = None) -> StoredSession:
    """Read a session in one pass; the bytes of items in our own encoding are kept as they are.

    With `before`, what it was when its records had come to that ordinal, which is not among them.
    Damaged lines are skipped, with one warning for all. Raise `UserError` when the file cannot be read or does not
    begin with a whole session header, or when the parent of a fork is missing.
    """
    with open_stored(path) as stream:
        first = next(read_lines(stream, limit=MAX_LINE), b"")
        meta = read_meta(path, first)
        chain = ancestors(path, meta)
        begun = last_compaction(stream, max_line=MAX_LINE, before=before)
        replay, line = _since(begun, stream, before) if begun else (Replay(), b"")
        if not begun or not replay.stands_alone():
            replay = Replay()
            for ancestor, bound in chain:
                with open_stored(ancestor) as older:
                    replay.feed_all(read_lines(older, limit=MAX_LINE), before=lower(bound, before))
            line = _whole(replay, stream, begun, before)
        size = stream.tell()
    # What has been taken back was paid for all the same.
    spending = replay.spending()
    if replay.is_rewound:
        replay = _without_rewound(path, replay, before)
    total, last = replay.usage()
    return StoredSession(
        path=path,
        meta=meta,
        items=tuple(with_origins(replay.items, meta.model_provider)),
        usage=total,
        last_usage=last,
        turn_context=replay.turn_context(),
        world_state=replay.world_state,
        window=replay.window,
        next_ordinal=replay.next_ordinal,
        size=size,
        ends_with_newline=(line or first).endswith(b"\n"),
        warnings=(f"skipped {counted(replay.damaged, 'damaged line')} in `{path}`",) if replay.damaged else (),
        pending_outputs=replay.pending_outputs(),
        covered=replay.covered(),
        work_state=replay.work_state,
        unheard=tuple(replay.unheard),
        spending=spending,
    )


def _without_rewound(path: Path, whole: Replay, before: int | None) -> Replay:
    """The state without the records that rewinds have dropped; `whole` is the state with all records."""
    live = live_ranges(path, before)
    replay = Replay()
    following = 0
    for line, bound in history_lines(path):
        head = read_head(line)
        if head is None:
            continue
        following = ordinal_of(head, following) + 1
        if is_live(following - 1, live):
            replay.feed(line, before=bound if before is None else lower(before, bound))
    replay.next_ordinal, replay.damaged = whole.next_ordinal, whole.damaged
    return replay


def _since(begun: int, stream: BinaryIO, before: int | None) -> tuple[Replay, bytes]:
    """The state from a compaction on, and the last line."""
    replay = Replay()
    stream.seek(begun)
    return replay, replay.feed_all(read_lines(stream, limit=MAX_LINE), before=before)


def _whole(replay: Replay, stream: BinaryIO, begun: int, before: int | None) -> bytes:
    """Feed every line of a file, and give back the last; items before the compaction at `begun` are passed over."""
    stream.seek(0)
    replay.skim(_lines_up_to(begun, stream))
    return replay.feed_all(read_lines(stream, limit=MAX_LINE), before=before)


def _lines_up_to(offset: int, stream: BinaryIO) -> Iterator[bytes]:
    """The lines, or pieces of overlong ones, from where the stream stands up to an offset at which a line begins."""
    position = stream.tell()
    while position < offset and (line := stream.readline(min(MAX_LINE, offset - position))):
        position += len(line)
        yield line

"""Loading what the next turn needs from a stored session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value
from codex_py.rollout.compaction_point import last_compaction
from codex_py.rollout.format import SessionMeta
from codex_py.rollout.lineage import MAX_LINE, ancestors, lower, open_stored, read_meta
from codex_py.rollout.replay import Replay
from codex_py.text.jsonl import read_lines


class StoredSession(Value):
    """What a file says a session was when its last record was written.

    `items` is the history to send, after the last compaction; `window` counts the compactions. `usage` is the sum over
    the session, `last_usage` that of its last response. `size` (bytes) and `ends_with_newline` describe the file as it
    was read. `pending_outputs` has, by call, the outputs that a killed run had no place for yet, and `unheard` what the
    user said to a run that was killed while it made room for it.
    """

    path: Path
    meta: SessionMeta
    items: tuple[ResponseItem, ...]
    usage: TokenUsage
    last_usage: TokenUsage
    turn_context: dict[str, Any] | None
    world_state: dict[str, Any] | None
    window: int
    next_ordinal: int
    size: int
    ends_with_newline: bool
    warnings: tuple[str, ...]
    pending_outputs: dict[str, ResponseItem]
    covered: int = 0
    work_state: dict[str, Any] | None = None
    unheard: tuple[ResponseItem, ...] = ()


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
    total, last = replay.usage()
    plural = "" if replay.damaged == 1 else "s"
    return StoredSession(
        path=path,
        meta=meta,
        items=tuple(replay.items),
        usage=total,
        last_usage=last,
        turn_context=replay.turn_context(),
        world_state=replay.world_state,
        window=replay.window,
        next_ordinal=replay.next_ordinal,
        size=size,
        ends_with_newline=(line or first).endswith(b"\n"),
        warnings=(f"skipped {replay.damaged} damaged line{plural} in `{path}`",) if replay.damaged else (),
        pending_outputs=replay.pending_outputs(),
        covered=replay.covered(),
        work_state=replay.work_state,
        unheard=tuple(replay.unheard),
    )


def _since(begun: int, stream: BinaryIO, before: int | None) -> tuple[Replay, bytes]:
    """What the lines from a compaction on say, and the last of them."""
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

"""Stored sessions: finding one by id or by age, and loading what the next turn needs from it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.ids import is_uuid
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value
from codex_py.rollout.files import (
    archived_files,
    home_of,
    open_rollout,
    os_reason,
    session_files,
    thread_of,
    unreadable,
)
from codex_py.rollout.format import SessionMeta
from codex_py.rollout.replay import Replay
from codex_py.text.jsonl import read_lines, read_lines_backwards

_MAX_LINE: Final = 128 * 1024 * 1024
_MAX_FILE: Final = 4 * 1024 * 1024 * 1024
_MAX_FORKS: Final = 64
_STAMP: Final = re.compile(rb'\{"timestamp":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z)"')
_TURN_CONTEXT: Final = b'"type":"turn_context"'


class StoredSession(Value):
    """What a file says a session was when its last record was written.

    `items` is the history to send, after the last compaction; `window` counts the compactions. `usage` is the sum over
    the session, `last_usage` that of its last response. `size` (bytes) and `ends_with_newline` describe the file as it
    was read.
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


def find_session(home: Path, thread_id: str) -> Path:
    """The file of a session; raise `UserError` for an id that is malformed, unknown or archived."""
    wanted = thread_id.strip().lower()
    if not is_uuid(wanted):
        raise UserError(
            f"not a session id: `{ascii(thread_id[:80])[1:-1]}`",
            hint="an id looks like `01a2000f-b531-7671-885f-ac1df6cf019b`",
        )
    for path in session_files(home):
        if thread_of(path) == wanted:
            return path
    if any(thread_of(path) == wanted for path in archived_files(home)):
        raise UserError(f"session `{wanted}` is archived", hint=f"`codex-py unarchive {wanted}` brings it back")
    raise UserError(f"no session with id `{wanted}`", hint="`resume --last` goes on with the newest session")


def latest_session(home: Path, cwd: Path | None) -> Path:
    """The session written to last among those that last worked in `cwd` (None: anywhere); `UserError` when none did.

    What counts is the time stamp of the last record, not the file's name or its modification time. Files that hold no
    session and those of subagents are passed over.
    """
    dated = ((_last_stamp(path), path) for path in session_files(home))
    for stamp, path in sorted(dated, reverse=True):
        if stamp and _is_offered(path, cwd):
            return path
    if cwd is None:
        raise UserError("no session to resume", hint="start one by giving a prompt without `resume`")
    raise UserError(f"no session to resume in `{cwd}`", hint="name a session by its id, or add `--all`")


def load_session(path: Path) -> StoredSession:
    """Read a session in one pass; the bytes of items in our own encoding are kept as they are.

    Damaged lines are skipped, with one warning for all. Raise `UserError` when the file cannot be read or does not
    begin with a whole session header, or when the parent of a fork is missing.
    """
    replay = Replay()
    with _open(path) as stream:
        lines = read_lines(stream, limit=_MAX_LINE)
        line = next(lines, b"")
        meta = _read_meta(path, line)
        for parent, before in _parents(path, meta):
            with _open(parent) as older:
                for old in read_lines(older, limit=_MAX_LINE):
                    replay.feed(old, before=before)
        replay.feed(line)
        line = replay.feed_all(lines) or line
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
        ends_with_newline=line.endswith(b"\n"),
        warnings=(f"skipped {replay.damaged} damaged line{plural} in `{path}`",) if replay.damaged else (),
    )


def _open(path: Path) -> BinaryIO:
    try:
        descriptor = open_rollout(path, os.O_RDONLY)
    except OSError as error:
        raise unreadable(path, os_reason(error)) from error
    if os.fstat(descriptor).st_size > _MAX_FILE:
        os.close(descriptor)
        raise unreadable(path, f"larger than {_MAX_FILE} bytes")
    return os.fdopen(descriptor, "rb", buffering=1024 * 1024)


def _read_meta(path: Path, line: bytes) -> SessionMeta:
    if not line:
        raise unreadable(path, "it is empty")
    try:
        record = as_object(decode_json(line))
    except ValueError as error:
        raise unreadable(path, "its first line is damaged") from error
    meta = SessionMeta.from_payload(as_object(record.get("payload")))
    if record.get("type") != "session_meta" or not is_uuid(meta.id):
        raise unreadable(path, "its first line is no session header")
    return meta


def _parents(path: Path, meta: SessionMeta) -> list[tuple[Path, int]]:
    """The files a fork builds on, the eldest first, each with the ordinal it is read up to."""
    chain: list[tuple[Path, int]] = []
    bound: int | None = None
    while meta.forked_from_id is not None and meta.forked_from_ordinal_exclusive is not None:
        # A fork may begin within what its parent took over, so an elder is read to the lowest bound on the way.
        bound = (
            min(bound, meta.forked_from_ordinal_exclusive) if bound is not None else meta.forked_from_ordinal_exclusive
        )
        parent = _any_file_of(home_of(path), meta.forked_from_id)
        if parent is None or len(chain) == _MAX_FORKS:
            raise unreadable(path, f"it continues session `{meta.forked_from_id[:80]}`, which is not there")
        chain.append((parent, bound))
        with _open(parent) as stream:
            meta = _read_meta(parent, stream.readline(_MAX_LINE))
    return chain[::-1]


def _any_file_of(home: Path, thread_id: str) -> Path | None:
    for files in (session_files(home), archived_files(home)):
        for path in files:
            if thread_of(path) == thread_id:
                return path
    return None


def _last_stamp(path: Path) -> bytes:
    """The time stamp of a file's last record; even a torn record shows when it was written."""
    try:
        with _open(path) as stream:
            stamps = map(_STAMP.match, read_lines_backwards(stream.fileno(), limit=64))
            return next((stamp[1] for stamp in stamps if stamp), b"")
    except (UserError, OSError):
        return b""


def _is_offered(path: Path, cwd: Path | None) -> bool:
    try:
        with _open(path) as stream:
            meta = _read_meta(path, stream.readline(_MAX_LINE))
            if meta.source == "subagent" or cwd is None:
                return meta.source != "subagent"
            last = next(_turn_folders(stream.fileno()), meta.cwd)
    except (UserError, OSError):
        return False
    return os.path.realpath(last) == os.path.realpath(cwd)


def _turn_folders(descriptor: int) -> Iterator[str]:
    """The working directories of a session's turns, the last one first."""
    for line in read_lines_backwards(descriptor, limit=1024 * 1024):
        if _TURN_CONTEXT not in line[:160]:
            continue
        try:
            folder = as_object(as_object(decode_json(line)).get("payload")).get("cwd")
        except ValueError:
            continue
        if isinstance(folder, str):
            yield folder

"""The files a session is made of: its own, and for a fork that holds no copy the files of those it builds on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.ids import is_uuid
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
from codex_py.text.jsonl import read_lines

MAX_LINE: Final = 128 * 1024 * 1024
_MAX_FILE: Final = 4 * 1024 * 1024 * 1024
_MAX_FORKS: Final = 64


def open_stored(path: Path) -> BinaryIO:
    """Open a rollout file for reading; raise `UserError` for one that cannot or must not be read."""
    try:
        descriptor = open_rollout(path, os.O_RDONLY)
    except OSError as error:
        raise unreadable(path, os_reason(error)) from error
    if os.fstat(descriptor).st_size > _MAX_FILE:
        os.close(descriptor)
        raise unreadable(path, f"larger than {_MAX_FILE} bytes")
    return os.fdopen(descriptor, "rb", buffering=1024 * 1024)


def read_meta(path: Path, line: bytes) -> SessionMeta:
    """The header in a file's first line; raise `UserError` when that is none."""
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


def ancestors(path: Path, meta: SessionMeta) -> list[tuple[Path, int]]:
    """The files a fork builds on, the eldest first, each with the ordinal it is read up to."""
    chain: list[tuple[Path, int]] = []
    bound: int | None = None
    while meta.forked_from_id is not None and meta.forked_from_ordinal_exclusive is not None:
        # A fork may begin within what its parent took over, so an elder is read to the lowest bound on the way.
        bound = lower(meta.forked_from_ordinal_exclusive, bound)
        parent = any_file_of(home_of(path), meta.forked_from_id)
        if parent is None or len(chain) == _MAX_FORKS:
            raise unreadable(path, f"it continues session `{meta.forked_from_id[:80]}`, which is not there")
        chain.append((parent, bound))
        with open_stored(parent) as stream:
            meta = read_meta(parent, stream.readline(MAX_LINE))
    return chain[::-1]


def lower(bound: int, other: int | None) -> int:
    """The lower of two ordinals, the second of which may be no bound at all."""
    return bound if other is None else min(bound, other)


def any_file_of(home: Path, thread_id: str) -> Path | None:
    """The file of a session, archived or not."""
    for files in (session_files(home), archived_files(home)):
        for path in files:
            if thread_of(path) == thread_id:
                return path
    return None


def history_lines(path: Path) -> Iterator[tuple[bytes, int | None]]:
    """Every line of a session, those of the eldest file first, each with the ordinal its file is read up to.

    Raise `UserError` for a file that cannot be read.
    """
    with open_stored(path) as stream:
        meta = read_meta(path, stream.readline(MAX_LINE))
    for file, before in [*ancestors(path, meta), (path, None)]:
        with open_stored(file) as stream:
            for line in read_lines(stream, limit=MAX_LINE):
                yield line, before

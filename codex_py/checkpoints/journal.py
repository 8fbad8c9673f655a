"""The note that a running rewind keeps beside its store, so that a rewind that was killed is recognised later.

It says between which two states the files are, and in which directories a draft may have been left behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple

from codex_py.checkpoints.entries import DRAFT_PREFIX, open_root, outermost, parent_directory
from codex_py.checkpoints.store import CheckpointStore, Missing

_NAME: Final = "rewinding"


class Journal(NamedTuple):
    """`before` and `target` are snapshots, `directories` those written to, as root and path; `roots` are all roots."""

    before: str
    target: str
    roots: tuple[str, ...]
    directories: tuple[tuple[str, bytes], ...]


def draft_prefix(store: CheckpointStore) -> bytes:
    """How the drafts of a session's rewinds begin: those of others are let alone."""
    return DRAFT_PREFIX + sha256(os.fsencode(store.directory.name)).hexdigest()[:12].encode() + b"-"


def write_journal(store: CheckpointStore, journal: Journal) -> None:
    """Put it on record before the first write. Raises `OSError`."""
    directories = [(root, os.fsdecode(path)) for root, path in journal.directories]
    content = {**journal._asdict(), "directories": directories}
    store.write_note(_NAME, json.dumps(content).encode())


def read_journal(store: CheckpointStore) -> Journal | None:
    """That of a rewind that has not come to its end; None where there is none."""
    raw = store.read_note(_NAME)
    try:
        value: Any = json.loads(raw) if raw else None
        if value is None:
            return None
        directories = tuple((str(root), os.fsencode(path)) for root, path in value["directories"])
        return Journal(str(value["before"]), str(value["target"]), tuple(map(str, value["roots"])), directories)
    except (ValueError, KeyError, TypeError):
        return None


def close_journal(store: CheckpointStore) -> None:
    """Remove the journal, and the drafts that a rewind has left behind."""
    journal = read_journal(store)
    if journal is None:
        return
    for root, path in journal.directories:
        _remove_drafts(root, outermost(journal.roots, root), path, draft_prefix(store))
    store.remove_note(_NAME)


def directories_of(paths: Iterable[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    """The directories of files, each once."""
    return tuple(dict.fromkeys((root, path.rpartition(b"/")[0]) for root, path in paths))


def interrupted_states(store: CheckpointStore) -> tuple[str, ...]:
    """The snapshots between which the files are since a rewind was killed; empty where they are not known."""
    journal = read_journal(store)
    if journal is None:
        return ()
    for name in (journal.before, journal.target):
        try:
            store.get(name)
        except Missing:
            return ()
    return (journal.before, journal.target)


def _remove_drafts(root: str, top: str, path: bytes, prefix: bytes) -> None:
    with suppress(OSError):
        descriptor = open_root(os.fsencode(root), os.fsencode(top))
        try:
            with parent_directory(descriptor, path + b"/x" if path else b"x") as (directory, _):
                with os.scandir(directory) as entries:
                    names = [os.fsencode(entry.name) for entry in entries if not entry.is_dir(follow_symlinks=False)]
                for name in names:
                    if name.startswith(prefix):
                        os.unlink(name, dir_fd=directory)
        finally:
            os.close(descriptor)

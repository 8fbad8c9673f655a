"""Who wrote a file: the turns of a session, or the user, another session or another program.

The times at which commands and patches of a turn could write are known, by the clock of the file system. A file that
was last changed at another time while the turn ran was changed by somebody else. Other sessions of this program have
stores that say what their turns changed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from codex_py.checkpoints.entries import Entry, changed_at, decode_entries, is_same
from codex_py.checkpoints.snapshot import changes_between, load_snapshot
from codex_py.checkpoints.store import (
    Checkpoint,
    CheckpointStore,
    FirstWrite,
    ForeignWrite,
    LogRecord,
    Missing,
    was_used_since,
)
from codex_py.errors import UserError

# So much earlier than another name in it a directory may have changed by that.
_SAME_MOMENT: Final = 20_000_000
_NAMELESS: Final = getattr(os, "O_TMPFILE", 0)


class FileTime(NamedTuple):
    """A moment by the clock that dates files, in nanoseconds."""

    now: int
    next_change: int
    """The earliest time of a later change. Where the clock goes in steps, it is after that of an earlier one."""


def file_system_time(directory: str) -> FileTime | None:
    """The time by the clock that dates the files of a directory; None where that cannot be known.

    A file without a name is made for it, so that nobody sees one.
    """
    descriptor = None
    try:
        descriptor = os.open(directory, _NAMELESS | os.O_RDWR | os.O_CLOEXEC, 0o600)
        first = os.fstat(descriptor).st_ctime_ns
        # Once the time was read, the next change has an exact one, and later changes have none before it (Linux 6.13).
        os.fchmod(descriptor, 0o600)
        now = os.fstat(descriptor).st_ctime_ns
        return FileTime(now, now if now > first else now + 1)
    except OSError:
        # A file system in the network has a clock of its own.
        return None
    finally:
        if descriptor is not None:
            os.close(descriptor)


class WriteTimes:
    """The times at which a turn could write below a directory."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._spans: list[tuple[int, int]] = []
        self._began = file_system_time(directory)
        self._since: int | None = None

    def begin(self) -> bool:
        """The turn may write from now on; whether it could not before."""
        if self._since is None and (time := file_system_time(self._directory)):
            self._since = time.now
            return True
        return False

    def end(self) -> None:
        """The turn no longer writes."""
        if self._since is not None and (time := file_system_time(self._directory)):
            self._spans.append((self._since, time.next_change))
        self._since = None

    def was_other(self, path: str) -> bool:
        """Whether somebody else has changed a file since the turn began, and the turn has not after that."""
        changed = changed_at(path)
        if self._began is None or changed < self._began.next_change:
            return False
        if self._since is not None and changed >= self._since:
            return False
        if any(start <= changed < end for start, end in self._spans):
            return False
        return os.path.lexists(path) or not _has_newer_name(path, changed)


def _has_newer_name(path: str, changed: int) -> bool:
    """Whether the change of a directory in which a file is missing was that of another name."""
    directory = os.path.dirname(path)  # noqa: PTH120
    while not os.path.isdir(directory):  # noqa: PTH112
        directory = os.path.dirname(directory)  # noqa: PTH120
    try:
        with os.scandir(directory) as entries:
            return any(abs(entry.stat(follow_symlinks=False).st_ctime_ns - changed) < _SAME_MOMENT for entry in entries)
    except OSError:
        return True


class OthersStates:
    """The states in which others have left files, by absolute paths: the user, and other sessions since a time.

    `records` are those of the own session since then. Blocks: for a thread.
    """

    def __init__(self, store: CheckpointStore, records: Sequence[LogRecord], since: float) -> None:
        self._after: dict[str, list[Entry | None]] = {}
        self._before: dict[str, Entry | None] = {}
        for record in records:
            if isinstance(record, ForeignWrite):
                self._note(record.states().items())
        for directory in store.directory.parent.iterdir():
            other = CheckpointStore(directory)
            if directory != store.directory and was_used_since(other, since):
                with suppress(UserError, Missing):
                    self._add_session(other, since)

    def has(self, path: str, now: Entry | None) -> bool:
        """Whether a file is as somebody else has left it."""
        is_left = any(is_same(entry, now) for entry in self._after.get(path, ()))
        return is_left or (path in self._before and not is_same(self._before[path], now))

    def _note(self, states: Iterable[tuple[str, Entry | None]]) -> None:
        for path, entry in states:
            self._after.setdefault(path, []).append(entry)

    def _add_session(self, store: CheckpointStore, since: float) -> None:
        records = store.records()
        others = {path for record in records if isinstance(record, ForeignWrite) for path in record.states()}
        last: Checkpoint | None = None
        for record in records:
            if not isinstance(record, Checkpoint) or not record.snapshot:
                continue
            if last is not None and record.time >= since and record.kind in ("end", "rewound"):
                before, after = load_snapshot(store, last.snapshot), load_snapshot(store, record.snapshot)
                changes = changes_between(before, after)
                states = ((f"{change.root}/{os.fsdecode(change.path)}", change.after) for change in changes)
                self._note(state for state in states if state[0] not in others)
            last = record
        if last is not None and last.kind == "begin":
            # That turn still runs: its patches are known, and not yet what its commands do.
            for record in records:
                if isinstance(record, FirstWrite) and record.turn == last.turn:
                    for path, entry in decode_entries(record.entry).items():
                        self._before[f"{record.root}/{os.fsdecode(path)}"] = entry

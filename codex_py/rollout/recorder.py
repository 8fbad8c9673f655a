"""The writer of a session's file: appends each record with one `write()`, under a lock.

Recording never stops a session. The first failure is reported once; the file is truncated to its last whole record and
nothing more is written, so that a resumed session finds no gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir, open_private, sync_directory
from codex_py.protocol.encoding import encode_json, timestamp
from codex_py.protocol.value import Value
from codex_py.rollout.files import ThreadLock, active_writer, home_of, open_rollout
from codex_py.rollout.format import SessionMeta, StoredSession, encode_line, rollout_path
from codex_py.text.files import os_reason


class Inherited(Value):
    """The part of the parent's file that a fork copies: lines with their newlines, and the ordinal after them."""

    lines: Callable[[], Iterable[bytes]]
    next_ordinal: int


# How the warning begins that a session is not stored.
NOT_SAVED = "not saved: "


class RolloutRecorder:
    """Made by `create` or `resume`; `warn` gets one line when the session can no longer be saved."""

    def __init__(self, path: Path, *, meta: SessionMeta | None, next_ordinal: int, warn: Callable[[str], None]) -> None:
        """`meta` is the header of a file that is still to be created."""
        self.path = path
        self._meta = meta
        self._ordinal = next_ordinal
        self._warn = warn
        self._descriptor: int | None = None
        self._size = 0
        self._glue = b""
        self._synced = 0
        self._new = meta is not None
        self._stopped = False
        self._inherited: Inherited | None = None
        self._thread_lock: ThreadLock | None = None

    @classmethod
    def create(
        cls, home: Path, meta: SessionMeta, *, warn: Callable[[str], None], inherited: Inherited | None = None
    ) -> RolloutRecorder:
        """A recorder for a new session. The file, with `meta` in front, appears with the first record, and whole."""
        path = rollout_path(home, meta.id, when=meta.timestamp)
        recorder = cls(path, meta=meta, next_ordinal=meta.forked_from_ordinal_exclusive or 0, warn=warn)
        recorder._inherited = inherited
        return recorder

    @classmethod
    def resume(cls, session: StoredSession, *, warn: Callable[[str], None]) -> RolloutRecorder:
        """A recorder that appends to a stored session.

        Raise `UserError` at once when another process writes to it, or has written since it was read.
        """
        recorder = cls(session.path, meta=None, next_ordinal=session.next_ordinal, warn=warn)
        try:
            recorder._restore(session)
        except OSError as error:
            recorder._stop(error)
        except UserError:
            recorder.close()
            raise
        return recorder

    def record(self, record_type: str, payload: dict[str, Any] | bytes) -> None:
        """Append a record; bytes must be an encoded JSON object. Never raises for what the disk does."""
        if self._stopped:
            return
        try:
            if self._meta is not None:
                self._begin(self._meta)
            self._append(record_type, payload if isinstance(payload, bytes) else encode_json(payload))
        except (OSError, UserError) as error:
            self._cut_back()
            self._stop(error)

    async def sync(self) -> None:
        """Return when everything recorded so far is on the disk; other tasks go on meanwhile."""
        if self._descriptor is None or self._synced == self._size:
            return
        try:
            await asyncio.to_thread(self._flush, self._descriptor)
        except OSError as error:
            self._stop(error)

    def close(self) -> None:
        """Sync and close the file; later records are dropped."""
        self._stopped = True
        descriptor, self._descriptor = self._descriptor, None
        self._release()
        if descriptor is None:
            return
        try:
            if self._synced != self._size:
                self._flush(descriptor)
        except OSError as error:
            self._warn(f"{NOT_SAVED}cannot write `{self.path}`: {os_reason(error)}")
        finally:
            os.close(descriptor)

    def _begin(self, meta: SessionMeta) -> None:
        make_private_dir(self.path.parent)
        for directory in self.path.parents[:4]:
            _tighten(directory, 0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        # A fork can copy much: the file gets its final name only when all of it is written.
        path = self.path if self._inherited is None else self.path.with_name(f".{self.path.name}")
        self._descriptor = open_private(path, flags)
        lock(self._descriptor)
        self._thread_lock = ThreadLock(home_of(self.path), meta.id)
        self._meta = None
        self._append("session_meta", encode_json(meta.to_payload()))
        if self._inherited is not None:
            self._inherit(self._inherited, path)

    def _inherit(self, inherited: Inherited, path: Path) -> None:
        try:
            for line in inherited.lines():
                self._write(line)
            path.rename(self.path)
        except (OSError, UserError):
            path.unlink()
            raise
        self._ordinal = max(self._ordinal, inherited.next_ordinal)

    def _restore(self, session: StoredSession) -> None:
        self._descriptor = open_rollout(self.path, os.O_WRONLY | os.O_APPEND)
        self._size = self._synced = os.fstat(self._descriptor).st_size
        if not lock(self._descriptor):
            raise active_writer(session.meta.id)
        self._thread_lock = ThreadLock(home_of(self.path), session.meta.id)
        if self._size != session.size:
            raise UserError(f"session `{session.meta.id}` was written to while it was read", hint="try again")
        _tighten(self.path, 0o600)
        # A torn last line is closed by the next write, not before: resuming alone must not change the file.
        self._glue = b"" if session.ends_with_newline else b"\n"

    def _append(self, record_type: str, payload: bytes) -> None:
        self._write(self._glue + encode_line(self._ordinal, record_type, payload, timestamp=timestamp()))
        self._glue = b""
        self._ordinal += 1

    def _write(self, line: bytes) -> None:
        assert self._descriptor is not None
        written = os.write(self._descriptor, line)
        if written < len(line):
            # The system says why a write was short only when asked for the rest.
            rest = memoryview(line)[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        self._size += len(line)

    def _flush(self, descriptor: int) -> None:
        size = self._size
        os.fsync(descriptor)
        self._synced = size
        if self._new:
            self._new = False
            sync_directory(self.path.parent)

    def _cut_back(self) -> None:
        """Truncate the file to its last whole record after a failed write; remove it if that leaves nothing."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._size)
            if self._size == 0:
                self.path.unlink()

    def _stop(self, error: OSError | UserError) -> None:
        if self._stopped:
            return
        self._stopped = True
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        self._release()
        reason = os_reason(error) if isinstance(error, OSError) else str(error)
        self._warn(f"{NOT_SAVED}cannot write `{self.path}`: {reason}")

    def _release(self) -> None:
        if self._thread_lock is not None:
            self._thread_lock.release()


class NullRecorder:
    """Records nothing, for ephemeral sessions."""

    path = None

    def record(self, record_type: str, payload: dict[str, Any] | bytes) -> None: ...

    async def sync(self) -> None: ...

    def close(self) -> None: ...


Recorder: TypeAlias = RolloutRecorder | NullRecorder


def _tighten(path: Path, mode: int) -> None:
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        path.chmod(mode)

"""The writer of a session's file: one `write()` a record, appended, under a lock.

Recording never stops a session. The first failure is told once; the file is cut back to its last whole record and
nothing more is written, so that a later session finds no gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.ids import timestamp
from codex_py.protocol.items import ResponseItem
from codex_py.rollout.files import home_of, open_rollout, os_reason
from codex_py.rollout.format import SessionMeta, encode_line, rollout_path
from codex_py.rollout.reader import StoredSession


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

    @classmethod
    def create(cls, home: Path, meta: SessionMeta, *, warn: Callable[[str], None]) -> RolloutRecorder:
        """A recorder for a new session. The file, with `meta` in front, appears with the first record."""
        path = rollout_path(home, meta.id, when=meta.timestamp)
        return cls(path, meta=meta, next_ordinal=meta.forked_from_ordinal_exclusive or 0, warn=warn)

    @classmethod
    def resume(cls, session: StoredSession, *, warn: Callable[[str], None]) -> RolloutRecorder:
        """A recorder that appends to a stored session.

        Raise `UserError` at once when another process writes to it, or has written since it was read.
        """
        recorder = cls(session.path, meta=None, next_ordinal=session.next_ordinal, warn=warn)
        try:
            recorder._take_over(session)
        except OSError as error:
            recorder._stop(error)
        except UserError:
            recorder.close()
            raise
        return recorder

    def record_item(self, item: ResponseItem) -> None:
        """Append an item of the history."""
        self.record("response_item", item.encoded)

    def record(self, kind: str, payload: dict[str, Any] | bytes) -> None:
        """Append a record; bytes must be an encoded JSON object. Never raises for what the disk does."""
        if self._stopped:
            return
        try:
            if self._meta is not None:
                self._begin(self._meta)
            self._append(kind, payload if isinstance(payload, bytes) else encode_json(payload))
        except OSError as error:
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
        """Bring the file to the disk and let go of it; later records are dropped."""
        self._stopped = True
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        try:
            if self._synced != self._size:
                self._flush(descriptor)
        except OSError as error:
            self._warn(f"not saved: cannot write `{self.path}`: {os_reason(error)}")
        finally:
            os.close(descriptor)

    def _begin(self, meta: SessionMeta) -> None:
        make_private_dir(self.path.parent)
        for folder in self.path.parents[:4]:
            _tighten(folder, 0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        self._descriptor = open_private(self.path, flags)
        _lock(self._descriptor)
        self._meta = None
        self._append("session_meta", encode_json(meta.to_payload()))

    def _take_over(self, session: StoredSession) -> None:
        self._descriptor = open_rollout(self.path, os.O_WRONLY | os.O_APPEND)
        self._size = self._synced = os.fstat(self._descriptor).st_size
        if not _lock(self._descriptor) or _is_locked_by_codex_cli(home_of(self.path), session.meta.id):
            raise UserError(
                f"session `{session.meta.id}` already has an active writer",
                hint="close the other program, or start a new session",
            )
        if self._size != session.size:
            raise UserError(f"session `{session.meta.id}` was written to while it was read", hint="try again")
        _tighten(self.path, 0o600)
        # A torn last line is closed by the next write, not before: resuming alone must not change the file.
        self._glue = b"" if session.ends_with_newline else b"\n"

    def _append(self, kind: str, payload: bytes) -> None:
        assert self._descriptor is not None
        line = self._glue + encode_line(self._ordinal, kind, payload, timestamp=timestamp())
        written = os.write(self._descriptor, line)
        if written < len(line):
            # The system says why a write was short only when asked for the rest.
            rest = memoryview(line)[written:]
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        self._glue = b""
        self._size += len(line)
        self._ordinal += 1

    def _flush(self, descriptor: int) -> None:
        size = self._size
        os.fsync(descriptor)
        self._synced = size
        if self._new:
            self._new = False
            _sync_folder(self.path.parent)

    def _cut_back(self) -> None:
        """Take away what a failed write left behind the last whole record, and the file when that leaves nothing."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, self._size)
            if self._size == 0:
                self.path.unlink()

    def _stop(self, error: OSError) -> None:
        if self._stopped:
            return
        self._stopped = True
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
        self._warn(f"not saved: cannot write `{self.path}`: {os_reason(error)}")


class NullRecorder:
    """Keeps nothing, for sessions that leave no trace."""

    path = None

    def record_item(self, item: ResponseItem) -> None: ...

    def record(self, kind: str, payload: dict[str, Any] | bytes) -> None: ...

    async def sync(self) -> None: ...

    def close(self) -> None: ...


Recorder: TypeAlias = RolloutRecorder | NullRecorder


def _lock(descriptor: int) -> bool:
    """Take the file's lock until the descriptor is closed; False when another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks: records are still whole, because each is one appending write.
        return True
    return True


def _is_locked_by_codex_cli(home: Path, thread_id: str) -> bool:
    """Codex CLI does not lock the file itself but one of its own beside the sessions."""
    path = home / "thread-writer-locks" / f"{thread_id}.lock"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _tighten(path: Path, mode: int) -> None:
    status = path.stat()
    if status.st_uid == os.geteuid() and status.st_mode & 0o077:
        path.chmod(mode)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

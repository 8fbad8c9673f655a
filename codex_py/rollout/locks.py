"""Who may write to a session: one process at a time, of this program or of Codex CLI.

This program locks the rollout file itself. Codex CLI locks `thread-writer-locks/<id>.lock` and takes that file away
afterwards, both under a lock of the folder; a session of ours holds that one too, so that each sees the other.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir, open_private

_DIRECTORY: Final = "thread-writer-locks"
_COORDINATION: Final = ".coordination.lock"
_TRIES: Final = 8
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK


def active_writer(thread_id: str) -> UserError:
    """The error for a session that another process writes to."""
    return UserError(
        f"session `{thread_id}` already has an active writer", hint="close the other program, or start a new session"
    )


class ThreadLock:
    """The lock Codex CLI looks for. Where it cannot be made, in a folder one may not write to, nothing is held."""

    def __init__(self, home: Path, thread_id: str) -> None:
        """Take the lock; raise `UserError` when another process has it."""
        self._path = home / _DIRECTORY / f"{thread_id}.lock"
        self._descriptor: int | None = None
        for _ in range(_TRIES):
            try:
                make_private_dir(self._path.parent)
                descriptor = open_private(self._path, _FLAGS)
            except OSError:
                return
            if not lock(descriptor):
                os.close(descriptor)
                raise active_writer(thread_id)
            if self._is_at_its_path(descriptor):
                self._descriptor = descriptor
                return
            # Its last holder took the file away meanwhile, and a lock on that one keeps nobody out.
            os.close(descriptor)

    def release(self) -> None:
        """Let others write. Safe to call more than once."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        with suppress(OSError):
            coordination = open_private(self._path.with_name(_COORDINATION), _FLAGS)
            # Only then does nobody stand between opening the file and locking it; a file that stays does no harm.
            if lock(coordination):
                self._path.unlink(missing_ok=True)
            os.close(coordination)
        os.close(descriptor)

    def _is_at_its_path(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.lstat())
        except OSError:
            return False

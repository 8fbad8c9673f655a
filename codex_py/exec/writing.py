"""Writing to stdout, stderr and files, whoever reads there and however slowly."""

from __future__ import annotations

import errno
import os
import select
import time
from pathlib import Path
from typing import Final

from codex_py.paths import opened_directory, real_path

# What a pipe that is ready takes without making anybody wait.
_PIECE_BYTES: Final = select.PIPE_BUF
_STEP_MS: Final = 250
_LAST_SECONDS: Final = 1.0
# Names of the descriptors of this process.
_STREAMS: Final = Path("/dev/fd")


class Output:
    """Writes to descriptors. A reader that takes nothing is waited for, but after `hurry` no longer than a second."""

    def __init__(self) -> None:
        self._deadline: float | None = None
        self._abandoned: set[int] = set()

    def hurry(self) -> None:
        """The program is to end; safe to call from a signal handler."""
        if self._deadline is None:
            self._deadline = time.monotonic() + _LAST_SECONDS

    def write(self, descriptor: int, content: bytes) -> None:
        """Write every byte, also to a pipe that takes them in pieces.

        Raises `OSError` when the reader is gone, and `TimeoutError`, which is one, when it is waited for no longer.
        """
        ready = select.poll()
        ready.register(descriptor, select.POLLOUT)
        view = memoryview(content)
        while view:
            self._wait(descriptor, ready)
            try:
                view = view[os.write(descriptor, view[:_PIECE_BYTES]) :]
            except BlockingIOError:
                # Somebody made the pipe non-blocking; it is shared with whoever holds the other end.
                continue

    def write_file(self, path: Path, content: bytes) -> None:
        """Replace what a file of `fix_target` holds. A FIFO that nobody reads is an `OSError` at once, and so is a link
        that has appeared on the way: a command may have made it.
        """
        if path.parent == _STREAMS:
            self.write(int(path.name), content)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with opened_directory(path.parent) as directory:
                descriptor = os.open(path.name, flags, 0o666, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise OSError(error.errno, "its path has become a link") from error
            raise
        try:
            self.write(descriptor, content)
        finally:
            os.close(descriptor)

    def _wait(self, descriptor: int, ready: select.poll) -> None:
        # In steps: a signal does not end the wait by itself.
        while descriptor in self._abandoned or not ready.poll(_STEP_MS):
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._abandoned.add(descriptor)
                raise TimeoutError("nobody takes what is written")


def fix_target(path: Path) -> Path:
    """The file that a path leads to now, so that a link made later leads nowhere else; it need not exist.

    What has no path of its own, as the pipe behind `/dev/stdout`, is opened: an `OSError` where that fails.
    """
    real = Path(real_path(path))
    if os.path.lexists(real) or not path.exists():
        return real
    return _STREAMS / str(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))

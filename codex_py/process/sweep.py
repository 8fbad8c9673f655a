"""Finding what a command without a sandbox left running: daemons that made sessions of their own.

Every command carries a marker in its environment, which its descendants inherit. A process that clears its
environment and detaches from its parents cannot be found; only the sandbox holds such a one.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

MARKER: Final = "CODEX_COMMAND_MARK"
_SECONDS: Final = 1.0
_ENVIRON_BYTES: Final = 1024 * 1024


def kill_marked(prefix: str) -> None:
    """SIGKILL every process whose marker starts with `prefix`, and those they fork meanwhile; wait until they are gone.

    Blocks for as long as dying takes, milliseconds as a rule and a second at most.
    """
    wanted = f"{MARKER}={prefix}".encode()
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        dying = [fd for pid in _marked(wanted) if (fd := _kill(pid, wanted)) is not None]
        if not dying:
            return
        for fd in dying:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            os.close(fd)


def _kill(pid: int, wanted: bytes) -> int | None:
    """Kill one process; give back a descriptor that is readable when it has ended, None when it is gone already."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    with suppress(OSError):
        # Asked again: the number may have passed to another process before it was held.
        if _carries(pid, wanted):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            return fd
    os.close(fd)
    return None


def _marked(wanted: bytes) -> set[int]:
    own = os.getpid()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names are all it takes
    except OSError:
        return set()
    return {pid for pid in pids if pid != own and _carries(pid, wanted)}


def _carries(pid: int, wanted: bytes) -> bool:
    try:
        with Path(f"/proc/{pid}/environ").open("rb", buffering=0) as stream:
            environ = stream.read(_ENVIRON_BYTES) or b""
    except OSError:
        return False
    return environ.startswith(wanted) or b"\0" + wanted in environ

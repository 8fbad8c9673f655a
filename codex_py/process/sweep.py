"""Kills processes that commands without a sandbox left running, also when this program itself is killed.

Every command has a marker in its environment, which its descendants inherit, and on Linux also in a resource limit, for
those that clear their environment. A process that changes both escapes; only the sandbox prevents that.

Commands in a sandbox do not need this: bubblewrap dies with its parent and kills everything inside. The watchdog waits
on a pipe that closes when this process ends, however it ends.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

MARKER: Final = "CODEX_COMMAND_MARK"
# How /proc names the limit that carries a marker. The kernel has not looked at it since 2.4.25.
MARKED_LIMIT: Final = "Max file locks"
_LIMIT: Final = 10  # RLIMIT_LOCKS
_COMMAND_DIGITS: Final = 9
_SECONDS: Final = 1.0
_CHUNK_BYTES: Final = 16 * 1024
_ENVIRON_BYTES: Final = 1024 * 1024


def new_prefix() -> str:
    """The common prefix of the markers of one session."""
    return str(10**9 + int.from_bytes(os.urandom(5), "big") % (8 * 10**9))


def command_marker(prefix: str, number: int) -> str:
    """The marker of one command of a session: digits, few enough for a limit."""
    return f"{prefix}{number:0{_COMMAND_DIGITS}}"


def helper_prefix() -> str:
    """The beginning of the markers of what this process runs beside the commands of sessions, such as hooks."""
    return f"{os.getpid()}-"


@contextmanager
def marking(marker: str) -> Generator[None, None, None]:
    """Mark processes started inside the `with` block: they inherit the marker as a resource limit. Linux only."""
    if sys.platform != "linux":
        yield
        return
    before = resource.getrlimit(_LIMIT)
    with suppress(ValueError, OSError):  # the user's own limit is lower
        resource.setrlimit(_LIMIT, (int(marker), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(_LIMIT, before)


def kill_marked(prefix: str) -> None:
    """SIGKILL every process whose marker starts with `prefix`, and those they fork meanwhile; wait until they are gone.

    Blocks for as long as dying takes, milliseconds as a rule and a second at most.
    """
    marker = prefix.encode()
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        dying = [fd for pid in _marked(marker) if (fd := _kill(pid, marker)) is not None]
        if not dying:
            return
        for fd in dying:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
            os.close(fd)


def _kill(pid: int, marker: bytes) -> int | None:
    """Kill one process; give back a descriptor that is readable when it has ended, None when it is gone already."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    with suppress(OSError):
        # Asked again: the number may have passed to another process before it was held.
        if _has_marker(pid, marker):
            signal.pidfd_send_signal(fd, signal.SIGKILL)
            return fd
    os.close(fd)
    return None


def _marked(marker: bytes) -> set[int]:
    own = os.getpid()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - names are all it takes
    except OSError:
        return set()
    return {pid for pid in pids if pid != own and _has_marker(pid, marker)}


def _has_marker(pid: int, marker: bytes) -> bool:
    environ = _read(pid, "environ")
    entry = f"{MARKER}=".encode() + marker
    if environ.startswith(entry) or b"\0" + entry in environ:
        return True
    return _limit_of(pid).startswith(marker) and not _has_ended(pid)


def _limit_of(pid: int) -> bytes:
    """The limit that carries a marker, as text; empty when the process is gone."""
    try:
        return str(resource.prlimit(pid, _LIMIT)[0]).encode()
    except PermissionError:  # of another user: everybody may read its limits, which takes the kernel 30 times as long
        return _read(pid, "limits").partition(f"\n{MARKED_LIMIT} ".encode())[2].lstrip()
    except OSError:
        return b""


def _has_ended(pid: int) -> bool:
    """Whether it only waits to be reaped; its limits can be read until then."""
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] in ([], [b"Z"])


def _read(pid: int, name: str) -> bytes:
    try:
        file = os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        content = os.read(file, _CHUNK_BYTES)
        # A megabyte is only asked for where there is more: making room for it takes longer than most reads.
        return content if len(content) < _CHUNK_BYTES else content + os.read(file, _ENVIRON_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


_SCRIPT: Final = f"""\
trap '' HUP INT TERM
read -r _
for found in $(grep -als "{MARKER}=$1" /proc/[0-9]*/environ) $(grep -Els "^{MARKED_LIMIT} +$1" /proc/[0-9]*/limits); do
    found=${{found#/proc/}}
    kill -9 "${{found%%/*}}"
done
"""


class Watchdog:
    """Watches over the commands whose marker starts with `prefix`, from its making until `dismiss`."""

    def __init__(self, prefix: str) -> None:
        self._process = subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT, "watchdog", prefix),
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the watch: what it was for has been done."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def set_watch(prefix: str) -> Watchdog | None:
    """A watchdog, where the system can have one; commands run without it too."""
    if sys.platform != "linux":
        return None
    try:
        return Watchdog(prefix)
    except OSError:
        return None

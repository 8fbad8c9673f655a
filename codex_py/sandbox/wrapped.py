"""A command inside its sandbox, and the settings that hold for every one."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeVar

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import NetworkAccess
from codex_py.protocol.value import Value
from codex_py.sandbox.first_process import first_process
from codex_py.sandbox.linux import STARTED, Backend
from codex_py.sandbox.mounts import Mount, open_copies

_STATUS_BYTES: Final = 4096
# As bubblewrap writes it, and the stage.
_CHILD: Final = re.compile(rb'"child-pid": ?(\d+)')


class Limits(Value):
    """`unix_sockets` are the socket files that commands may connect to with workspace-write; True means all.

    `protected` are names that stay as they are in writable directories, there or not, and paths that start with `~/`.
    `moves_planted` says that a repository which comes to be where none can be held is a command's, and moved away: not
    beside a server, which runs for as long as the user works.
    """

    unix_sockets: Literal[True] | tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()
    moves_planted: bool = True


NO_LIMITS: Final = Limits()


C = TypeVar("C", bound=PreparedCommand)


def wrap_command(
    backend: Backend,
    command: C,
    mounts: Sequence[Mount],
    status: SandboxStatus,
    *,
    network: NetworkAccess,
    filter_fd: int,
) -> C:
    """A command inside what a backend makes of the mounts; takes over `filter_fd` and `status`. Raises `OSError`."""
    if backend.copies:
        mounts = open_copies(mounts)
    fds = (*command.fds, filter_fd, *(mount.fd for mount in mounts if mount.fd is not None), os.dup(status.fd))
    argv = first_process(command.argv, command.fds, command.notice) if backend.contains else command.argv
    options = backend.options(mounts, network=network, workdir=command.cwd, filter_fd=filter_fd, status_fd=fds[-1])

    def cleanup() -> None:
        status.close()
        command.cleanup()

    return command.replace(
        argv=(*options, *argv),
        fds=fds,
        cleanup=cleanup,
        has_begun=status.has_begun,
        sandboxed=backend.contains,
    )


def _count_namespaces(process: int | str) -> int:
    """In how many process namespaces a process is; unlike the namespace itself, everybody may read that."""
    found = re.search(r"^NSpid:(.*)$", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    return len(found[1].split()) if found else 0


class SandboxStatus:
    """A file in memory that the backend writes into when the command begins, or has begun and ended; before that, where
    it contains the command, which process has all of it below itself."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("status", os.MFD_CLOEXEC)

    def has_begun(self) -> bool:
        return STARTED in os.pread(self.fd, _STATUS_BYTES, 0)

    def kill_child(self) -> bool:
        """End the command and all that it has started; whether that was possible, as it is where it is contained."""
        if found := _CHILD.search(os.pread(self.fd, _STATUS_BYTES, 0)):
            child = int(found[1])
            # It may have ended, and its number be another process's: that one is in no namespace of its own.
            with suppress(OSError):
                if _count_namespaces(child) > _count_namespaces("self"):
                    os.kill(child, signal.SIGKILL)
                    return True
        return False

    def close(self) -> None:
        os.close(self.fd)

"""A command inside its sandbox, and the settings that hold for every one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeVar

from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import NetworkAccess
from codex_py.protocol.value import Value
from codex_py.sandbox.linux import STARTED, Backend
from codex_py.sandbox.mounts import Mount, open_copies

_STATUS_BYTES: Final = 4096


class Limits(Value):
    """`unix_sockets` are the socket files that commands may connect to with workspace-write; True means all.

    `protected` are names that stay as they are in writable directories, there or not, and paths that start with `~/`.
    """

    unix_sockets: Literal[True] | tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()


NO_LIMITS: Final = Limits()


C = TypeVar("C", bound=PreparedCommand)


def wrap_command(backend: Backend, command: C, mounts: Sequence[Mount], *, network: NetworkAccess, filter_fd: int) -> C:
    """A command inside what a backend makes of the mounts; takes over `filter_fd`. Raises `OSError`."""
    if backend.copies:
        mounts = open_copies(mounts)
    status = _Status()
    fds = (*command.fds, filter_fd, *(mount.fd for mount in mounts if mount.fd is not None), os.dup(status.fd))
    options = backend.options(mounts, network=network, workdir=command.cwd, filter_fd=filter_fd, status_fd=fds[-1])

    def cleanup() -> None:
        status.close()
        command.cleanup()

    return command.replace(
        argv=(*options, *command.argv),
        fds=fds,
        cleanup=cleanup,
        has_begun=status.has_begun,
        sandboxed=backend.contains,
    )


class _Status:
    """A file in memory that the backend writes into when the command begins, or has begun and ended."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("status", os.MFD_CLOEXEC)

    def has_begun(self) -> bool:
        return STARTED in os.pread(self.fd, _STATUS_BYTES, 0)

    def close(self) -> None:
        os.close(self.fd)

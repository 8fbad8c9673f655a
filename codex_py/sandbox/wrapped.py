"""A command line that is ready to start in its sandbox, and the settings that hold for every one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

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


def _nothing() -> None:
    """What an unsandboxed command has to release and to clean up."""


def _always() -> bool:
    """Whether an unsandboxed command began, once its process has."""
    return True


class Wrapped(Value):
    """A command line ready to start.

    `env` is added to the command's environment. `fds` must be inherited under their own numbers; `release` closes them
    once the process has started (or failed to), `cleanup` removes what the sandbox left on the host once it has ended.
    Each of the two must be called exactly once. `sandboxed` says that the process is a sandbox whose death takes
    everything inside along; under Landlock it is not, though restricted. `has_begun` tells, from the end of the process
    until `cleanup`, whether the command began: where the disk changed while the sandbox was set up, it did not, and
    `wrap` can be called again.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    sandboxed: bool = False
    fds: tuple[int, ...] = ()
    release: Callable[[], None] = _nothing
    cleanup: Callable[[], None] = _nothing
    has_begun: Callable[[], bool] = _always


def wrap_argv(
    backend: Backend,
    argv: Sequence[str],
    mounts: Sequence[Mount],
    *,
    network: NetworkAccess,
    workdir: Path,
    filter_fd: int,
) -> Wrapped:
    """Wrap a command line with what a backend makes of the mounts; takes over `filter_fd`. Raises `OSError`."""
    if backend.copies:
        mounts = open_copies(mounts)
    status = _Status()
    fds = (filter_fd, *(mount.fd for mount in mounts if mount.fd is not None))
    options = backend.options(mounts, network=network, workdir=workdir, filter_fd=filter_fd, status_fd=status.fd)

    return Wrapped(
        (*options, *argv),
        {},
        sandboxed=backend.contains,
        fds=(*fds, status.fd),
        release=lambda: _close(fds),
        cleanup=status.close,
        has_begun=status.has_begun,
    )


class _Status:
    """A file in memory that the backend writes into when the command begins, or has begun and ended."""

    def __init__(self) -> None:
        self.fd = os.memfd_create("status", os.MFD_CLOEXEC)

    def has_begun(self) -> bool:
        return STARTED in os.pread(self.fd, _STATUS_BYTES, 0)

    def close(self) -> None:
        os.close(self.fd)


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)

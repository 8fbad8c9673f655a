"""A command line that is ready to start in its sandbox, and the settings that hold for every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

from codex_py.protocol.value import Value


class Limits(Value):
    """`unix_sockets` are the socket files that commands may connect to with workspace-write; True means all.

    `protected` are names that stay read-only where they exist in writable directories, and paths that start with `~/`.
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

"""A command with all that starting it takes, as sandbox, hooks, MCP servers and tools pass it on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from codex_py.protocol.value import Value

MAX_STARTS: Final = 3
# How every sandbox ends that cannot be set up; others were killed.
_NOT_SET_UP: Final = 1


def _nothing() -> None:
    """The cleanup of a command without a sandbox: there is none."""


def _always() -> bool:
    """A command without a sandbox has begun once its process has."""
    return True


class PreparedCommand(Value):
    """A command that is ready to start. `env` is its whole environment.

    Whoever starts it passes on `fds` under their own numbers, calls `close_fds` once it has started or failed to, and
    `cleanup` once it has ended; each exactly once. `sandboxed` says that the process is a sandbox whose death takes
    everything inside along; under Landlock it is not, though restricted. Such a sandbox ends the output with a line
    that names the processes it stops, which begins with `notice`; it prints none when that is empty. `has_begun` says,
    from the end of the process until `cleanup`, whether more than its sandbox has run.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    fds: tuple[int, ...] = ()
    cleanup: Callable[[], None] = _nothing
    has_begun: Callable[[], bool] = _always
    sandboxed: bool = False
    notice: str = ""

    def close_fds(self) -> None:
        for fd in self.fds:
            os.close(fd)

    def discard(self) -> None:
        """Undo the preparation of a command that is not going to be started."""
        self.close_fds()
        self.cleanup()

    def never_began(self, exit_code: int | None) -> bool:
        """Whether the process that has ended with this code was only the sandbox: the disk changed during its set-up.

        Ask before `cleanup`. Then the command is prepared and started again, `MAX_STARTS` times at most.
        """
        return exit_code == _NOT_SET_UP and not self.has_begun()

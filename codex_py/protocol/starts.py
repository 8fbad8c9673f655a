"""Whether to start a command again whose sandbox could not be set up, because a path that it needs has vanished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

MAX_STARTS: Final = 3
# How every sandbox ends that cannot be set up; others were killed.
_NOT_SET_UP: Final = 1


def never_began(exit_code: int | None, has_begun: Callable[[], bool]) -> bool:
    """Whether a process that has ended with this code was only the sandbox, before what it holds.

    `has_begun` is the sandbox's own answer, asked before its cleanup. Then the mounts are laid out again and the
    command is started again, `MAX_STARTS` times at most.
    """
    return exit_code == _NOT_SET_UP and not has_begun()

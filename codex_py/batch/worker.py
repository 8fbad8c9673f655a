"""A process of a batch: `python -m codex_py.batch.worker PARENT ARGUMENTS…` is `codex-py ARGUMENTS…` with a parent.

On Linux it gets SIGTERM when its parent is gone, however that ended; elsewhere the lock of its session keeps the next
batch from running the same task beside it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Final, Literal

_PR_SET_PDEATHSIG: Final = 1


def end_with(has_parent: Callable[[], bool] | Literal[False]) -> None:
    """Be asked to stop when the parent ends. Leave at once if it has ended already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if not (has_parent and has_parent()):
        os._exit(128 + signal.SIGTERM)


if __name__ == "__main__":
    end_with(lambda: os.getppid() == int(sys.argv[1]))
    sys.argv = ["codex-py", *sys.argv[2:]]
    # Its import prepares for signals, so it comes last.
    import_module("codex_py.cli.entry").main()

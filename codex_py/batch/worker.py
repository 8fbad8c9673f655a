"""Where the processes of tasks come from: the parent that they are forked from, and one that is started by itself.

`python -m codex_py.batch.worker PARENT ARGUMENTS…` is `codex-py ARGUMENTS…` with a parent: on Linux it gets SIGTERM
when its parent is gone, however that ended; elsewhere the lock of its session keeps the next batch from running the
same task beside it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Final, Literal

# In the environment of the parent: the directory with its socket, which it removes when it ends.
SOCKETS_VARIABLE: Final = "CODEX_PY_BATCH_SOCKETS"
_PRELOADED: Final = "codex_py.batch.preloaded"
_SAFE_PATH: Final = "PYTHONSAFEPATH"
_PR_SET_PDEATHSIG: Final = 1


def warm_up() -> None:
    """Start the parent, which loads the program meanwhile, unless it runs."""
    if not can_be_warm():
        return
    # Not at the top: a process that is started by itself needs none of it.
    forkserver = import_module("multiprocessing.forkserver")
    forkserver.set_forkserver_preload([_PRELOADED])
    with safe_environment():
        try:
            forkserver.ensure_running()
        except OSError:
            # A path that is too long for a socket, for one; tasks are plain processes then.
            shutil.rmtree(os.environ[SOCKETS_VARIABLE], ignore_errors=True)


def can_be_warm() -> bool:
    """Whether tasks can be forked here."""
    # The library starts Python with the current directory on its path, unless a variable says otherwise.
    return sys.platform == "linux" and (sys.flags.safe_path or not sys.flags.ignore_environment)


@contextmanager
def safe_environment() -> Generator[None]:
    """The environment in which the library may start its Python programs.

    They load no modules from the current directory, which may be a project of others, and know what to remove.
    """
    own = {_SAFE_PATH: "1", SOCKETS_VARIABLE: import_module("multiprocessing.util").get_temp_dir()}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


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

"""The entry point of the console script. A signal that arrives while the program loads ends it without a message.

Only for the console script: importing this installs signal handlers.
"""

from __future__ import annotations

# Python has loaded these two already; everything below is looked up in `sys.path`.
import os
import sys


def _leave_out_relative(variable: str) -> None:
    """Take the directories that a `PYTHONPATH` such as `:/x` or `.` names out of `sys.path`: nobody trusts them yet."""
    named = variable.split(os.pathsep) if variable else []
    try:
        relative = {"", *(os.path.abspath(path) for path in named if not os.path.isabs(path))}  # noqa: PTH100, PTH117
    except OSError:  # the current directory is gone
        relative = {""}
    sys.path[:] = [path for path in sys.path if path not in relative or (path and path in named)]


_leave_out_relative(os.environ.get("PYTHONPATH", ""))

import signal  # noqa: E402
from _thread import get_ident  # noqa: E402


def _leave(number: int, _: object) -> None:
    if not _writes_artifacts(sys.argv):
        # Nothing has been started, so there is nothing to clean up.
        os._exit(128 + number)
    # `exec` takes it as soon as it is loaded, and writes the files then.
    signal.pthread_sigmask(signal.SIG_BLOCK, (number,))
    signal.pthread_kill(get_ident(), number)


def _writes_artifacts(words: list[str]) -> bool:
    """Whether a command line is one of `exec` with `--artifacts`."""
    flags = words[: words.index("--")] if "--" in words else words
    is_exec = not {"exec", "e", "review"}.isdisjoint(flags)
    return is_exec and any(flag.partition("=")[0] == "--artifacts" for flag in flags)


# A shell that started this in the background has interrupts ignored, as `nohup` has hangups, and then they stay so.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(_number, _leave)

# An interrupt while this loads has its handler now.
from codex_py.cli.main import main  # noqa: E402

__all__ = ["main"]

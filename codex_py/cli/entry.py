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

from codex_py.cli.early_signals import install_early_handlers  # noqa: E402

install_early_handlers()

# An interrupt while this loads has its handler now.
from codex_py.cli.main import main  # noqa: E402

__all__ = ["main"]

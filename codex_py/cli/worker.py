"""The process of a task of `codex-py batch`, and of a run of `codex-py skills test`.

`python -m codex_py.cli.worker PARENT ARGUMENTS…` is `codex-py ARGUMENTS…` with a parent: on Linux it gets SIGTERM when
its parent is gone, however that ended; elsewhere the lock of its session keeps the next batch from running the same
task beside it.
"""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from codex_py.batch.engine import end_with
from codex_py.cli.early_signals import install_early_handlers
from codex_py.cli.main import main


def run_task() -> NoReturn:
    """Be `codex-py` with the arguments in `sys.argv`."""
    install_early_handlers()
    main()


if __name__ == "__main__":
    end_with(lambda: os.getppid() == int(sys.argv[1]))
    sys.argv = ["codex-py", *sys.argv[2:]]
    run_task()

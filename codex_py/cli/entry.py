"""The entry point of the console script. A signal that arrives while the program loads ends it without a message.

Only for the console script: importing this installs signal handlers.
"""

from __future__ import annotations

import os
import signal


def _leave(number: int, _: object) -> None:
    # Nothing has been started, so there is nothing to clean up.
    os._exit(128 + number)


# A shell that started this in the background has interrupts ignored, as `nohup` has hangups, and then they stay so.
for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) in (signal.default_int_handler, signal.SIG_DFL):
        signal.signal(_number, _leave)


def main() -> None:
    """The console script. Ends the process itself."""
    from codex_py.cli.main import main as begin

    begin()

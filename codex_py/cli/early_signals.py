"""Signals while the program loads: they end it without a message. Cheap to import."""

from __future__ import annotations

import os
import signal
import sys
from _thread import get_ident


def install_early_handlers() -> None:
    """End this process at a signal, until who runs next has handlers of its own."""
    # A shell that started this in the background has interrupts ignored, as `nohup` has hangups, and then they stay so.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _leave)


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

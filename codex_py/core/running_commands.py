"""The commands that still run, for a person to look at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from codex_py.process.session import RunningCommand
from codex_py.protocol.live_process import LiveProcess

_TAIL: Final = 2000


def describe_processes(sessions: Iterable[RunningCommand], redact: Callable[[str], str]) -> tuple[LiveProcess, ...]:
    """As people are shown them; `redact` takes out the secrets."""
    now = time.monotonic()
    return tuple(
        LiveProcess(
            id=session.id,
            command=redact(session.line),
            cwd=session.cwd,
            seconds=now - session.started,
            tty=session.tty,
            outside=session.outside,
            tail=redact(session.transcript())[-_TAIL:],
        )
        for session in sessions
    )

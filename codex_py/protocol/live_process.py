"""A command that still runs, as people are shown it."""

from __future__ import annotations

from pathlib import Path

from codex_py.protocol.value import Value


class LiveProcess(Value):
    """`id` is the session ID the model knows it by; `outside` says that no sandbox holds it.

    `tail` is the end of what it has printed, 2,000 characters at most. `agent` is what the agent is called that has
    started it, "" for a command of the session's own.
    """

    id: int
    command: str
    cwd: Path
    seconds: float
    tty: bool
    outside: bool
    tail: str
    agent: str = ""

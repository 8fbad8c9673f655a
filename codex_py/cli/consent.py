"""Asking for a yes before something that cannot be taken back, or that lets something run."""

from __future__ import annotations

import sys

from codex_py.errors import UsageError
from codex_py.text.sanitize import sanitize_line


def is_agreed(question: str, *, needs: str) -> bool:
    """Whether the user says yes to a question on the terminal; everything but a yes is a no.

    `needs` says what needs a yes, for the `UsageError` where nobody can be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{needs} needs a yes, and nobody can be asked", hint="pass --yes")
    sys.stderr.write(sanitize_line(f"{question} [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")

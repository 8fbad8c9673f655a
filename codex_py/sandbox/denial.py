"""Guessing from a command's end whether the sandbox stopped it."""

from __future__ import annotations

from typing import Final

_SIGNS: Final = (
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
)
# Wrong usage, not executable, not found: the shell's own verdicts.
_NEVER: Final = (0, 2, 126, 127)
_KILLED_BY_FILTER: Final = 128 + 31


def looks_denied(exit_code: int, output: str) -> bool:
    """Whether a sandboxed command that ended so was probably refused something by the sandbox."""
    if exit_code == _KILLED_BY_FILTER:
        return True
    if exit_code in _NEVER:
        return False
    folded = output.lower()
    return any(sign in folded for sign in _SIGNS)

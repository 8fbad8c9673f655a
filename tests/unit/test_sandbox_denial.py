"""Guessing whether the sandbox stopped a command."""

from __future__ import annotations

import pytest

from codex_py.tools.escalation import looks_denied


@pytest.mark.parametrize(
    ("exit_code", "output", "denied"),
    [
        (1, "touch: cannot touch 'x': Read-only file system", True),
        (1, "bash: x: Permission denied", True),
        (1, "socket: Operation not permitted", True),
        (1, "Failed to write file x", True),
        (1, "assertion failed", False),
        (0, "Permission denied", False),
        (2, "Permission denied", False),
        (126, "Permission denied", False),
        (127, "sandbox: not found", False),
        (159, "", True),
        (137, "", False),
    ],
)
def test_denials_are_distinguished_from_other_failures(exit_code: int, output: str, denied: bool) -> None:
    assert looks_denied(exit_code, output) is denied

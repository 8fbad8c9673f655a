"""Asking git. Blocks: for a thread."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_SECONDS: Final = 20.0


def ask_git(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """Run git in a folder. Raises `OSError`, `ValueError` and `TimeoutExpired` when it cannot be asked."""
    # The repository's own settings start no program of its choice; and no folder of the workspace, where commands may
    # write, passes for a repository by what lies in it.
    settings = ["-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"]
    return subprocess.run(
        ["git", "-C", str(cwd), "--no-optional-locks", *settings, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_SECONDS,
        check=False,
    )


def git_lines(cwd: Path, arguments: Sequence[str], *, separator: str = "\n") -> list[str]:
    """What git answers, in pieces without the empty ones; none where it does not."""
    try:
        found = ask_git(cwd, *arguments)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return []
    if found.returncode:
        return []
    return [piece for piece in found.stdout.decode("utf-8", "surrogateescape").split(separator) if piece]

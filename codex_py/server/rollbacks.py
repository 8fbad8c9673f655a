"""What a client asks for that goes back before a turn, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.protocol.value import Value


class RollbackRequest(Value):
    """Before which turn a session goes back: its number, or `latest` to undo the last time; and what goes back."""

    to: str
    files: bool = False
    conversation: bool = True
    copies_conflicts: bool = False
    dry_run: bool = False


class RollbackOutcome(Value):
    """What became of the files, as `sessions rewind --json` prints it, and the message that was gone back before."""

    files: Mapping[str, Any]
    lines: tuple[str, ...]
    message: str
    notices: tuple[str, ...]

"""The request of a client to go back before a turn, and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_py.protocol.value import Value


class RollbackRequest(Value):
    """A request to go back before a turn, `to` being its number, or `latest` to undo the last rewind."""

    to: str
    files: bool = False
    conversation: bool = True
    copies_conflicts: bool = False
    dry_run: bool = False


class RollbackOutcome(Value):
    """The result for the files, as `sessions rewind --json` prints it, and the message the session went back before."""

    files: Mapping[str, Any]
    lines: tuple[str, ...]
    message: str
    notices: tuple[str, ...]

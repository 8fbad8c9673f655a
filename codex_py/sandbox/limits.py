"""What the user's settings change about every sandboxed command, whatever its policy."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from codex_py.protocol.value import Value


class Limits(Value):
    """`unix_sockets` are the socket files that commands may connect to with workspace-write; True means all.

    `protected` are names that stay read-only where they exist in writable directories, and paths that start with `~/`.
    """

    unix_sockets: Literal[True] | tuple[Path, ...] = ()
    protected: tuple[str, ...] = ()


NO_LIMITS: Final = Limits()

"""Why commands of root cannot write files of other users: in a sandbox root has no rights over them."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import suppress
from pathlib import Path

from codex_py.protocol.policy import SandboxPolicy, WorkspaceWrite


def describe_foreign_owner(policy: SandboxPolicy, cwd: Path) -> str | None:
    """A line for the user and the model if commands of root cannot write a directory that they work in."""
    if sys.platform != "linux" or os.geteuid() or not isinstance(policy, WorkspaceWrite):
        return None
    for directory in (cwd, *(cwd / root for root in policy.writable_roots)):
        with suppress(OSError):
            status = directory.stat()
            if status.st_uid and not status.st_mode & stat.S_IWOTH:
                return _describe(directory, status.st_uid, status.st_gid)
    return None


def _describe(directory: Path, uid: int, gid: int) -> str:
    return (
        f"`{directory}` belongs to user {uid}: commands cannot write there, because inside the sandbox root has no "
        f"rights over files of other users; run codex-py as that user (`docker run --user {uid}:{gid}`, or `setpriv "
        f"--reuid {uid} --regid {gid} --clear-groups codex-py`), or make the files root's (`chown -R root`)"
    )

"""What a session's commands may do. Set by the user's configuration, never by a tool's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from codex_py.protocol.value import Value

ApprovalPolicy: TypeAlias = Literal["untrusted", "on-failure", "on-request", "never"]
SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]
NetworkAccess: TypeAlias = bool | Literal["loopback"]


class ReadOnly(Value):
    """Commands read everything, write nothing, and have no network."""


class WorkspaceWrite(Value):
    """Commands write below the working directory, the extra roots and the temporary folders."""

    writable_roots: tuple[Path, ...] = ()
    network_access: NetworkAccess = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


class DangerFullAccess(Value):
    """No sandbox at all."""


SandboxPolicy: TypeAlias = ReadOnly | WorkspaceWrite | DangerFullAccess


def mode_of(policy: SandboxPolicy) -> SandboxMode:
    """The name a user writes for a policy."""
    match policy:
        case ReadOnly():
            return "read-only"
        case WorkspaceWrite():
            return "workspace-write"
        case DangerFullAccess():
            return "danger-full-access"

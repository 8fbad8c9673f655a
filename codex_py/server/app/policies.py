"""Approval and sandbox policies as the protocol writes them, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.schema import APPROVAL_POLICIES
from codex_py.protocol.encoding import as_object
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    GranularApproval,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
    approval_payload,
)
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_SANDBOXES: Final = ("readOnly", "workspaceWrite", "dangerFullAccess", "externalSandbox")
_GRANULAR_FLAGS: Final = ("sandbox_approval", "rules", "mcp_elicitations", "skill_approval", "request_permissions")


def read_approval(params: Params, name: str = "approvalPolicy") -> ApprovalPolicy | None:
    """The approval policy among the parameters."""
    value = params.raw(name)
    if not isinstance(value, dict):
        return params.choice(name, APPROVAL_POLICIES)
    table = Params(as_object(cast("object", value)), f"{name}.")
    granular = table.nested("granular")
    if granular is None:
        raise table.missing("granular")
    return GranularApproval(**{flag: granular.flag(flag) for flag in _GRANULAR_FLAGS})


def read_sandbox(params: Params, name: str = "sandboxPolicy") -> SandboxPolicy | None:
    """The sandbox policy among the parameters. One that is only read in has no network here."""
    policy = params.nested(name)
    if policy is None:
        return None
    match policy.choice("type", _SANDBOXES):
        case "readOnly":
            if policy.flag("networkAccess"):
                raise RpcError(f"`{name}` asks for a network, which the read-only sandbox does not have")
            return ReadOnly()
        case "workspaceWrite":
            roots = [Path(root) for root in policy.texts("writableRoots") or ()]
            if not all(root.is_absolute() for root in roots):
                raise RpcError(f"invalid request: `{name}.writableRoots` has a path that is not absolute")
            return WorkspaceWrite(
                writable_roots=tuple(roots),
                network_access=policy.flag("networkAccess"),
                exclude_tmpdir_env_var=policy.flag("excludeTmpdirEnvVar"),
                exclude_slash_tmp=policy.flag("excludeSlashTmp"),
            )
        case "dangerFullAccess" | "externalSandbox":
            # In a sandbox of the client's own, commands are not held a second time.
            return DangerFullAccess()
        case _:
            raise policy.missing("type")


def approval_value(policy: ApprovalPolicy) -> Any:
    return approval_payload(policy)


def sandbox_payload(policy: SandboxPolicy) -> dict[str, Any]:
    match policy:
        case ReadOnly():
            return {"type": "readOnly", "networkAccess": False}
        case DangerFullAccess():
            return {"type": "dangerFullAccess"}
        case WorkspaceWrite(roots, network, no_tmpdir, no_tmp):
            return {
                "type": "workspaceWrite",
                "writableRoots": [str(root) for root in roots],
                # The protocol knows no loopback-only network.
                "networkAccess": network is True,
                "excludeTmpdirEnvVar": no_tmpdir,
                "excludeSlashTmp": no_tmp,
            }

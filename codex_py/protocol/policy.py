"""The sandbox and approval policies of a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.value import Value

ApprovalWord: TypeAlias = Literal["untrusted", "on-failure", "on-request", "never"]
QuestionType: TypeAlias = Literal[
    "sandbox_approval", "rules", "mcp_elicitations", "skill_approval", "request_permissions"
]
SandboxMode: TypeAlias = Literal["read-only", "workspace-write", "danger-full-access"]
NetworkAccess: TypeAlias = bool | Literal["loopback"]


GRANULAR: Final = "granular"


class GranularApproval(Value):
    """Each kind of question is put to the user, or what it is about is refused without one.

    `sandbox_approval` are questions about what leaves the sandbox and about dangerous commands, `rules` those that a
    rule of the user wants asked. Otherwise commands run as under `on-request`.
    """

    sandbox_approval: bool
    rules: bool
    mcp_elicitations: bool
    skill_approval: bool = False
    request_permissions: bool = False


ApprovalPolicy: TypeAlias = ApprovalWord | GranularApproval


class ReadOnly(Value):
    """Commands read everything, write nothing, and have no network."""


class WorkspaceWrite(Value):
    """Commands write below the working directory, the extra roots and the temporary directories."""

    writable_roots: tuple[Path, ...] = ()
    network_access: NetworkAccess = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False
    git: bool = False
    """Whether they can commit: `.git` can be written too, except for what makes git run programs."""


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


def extra_roots(policy: SandboxPolicy) -> tuple[Path, ...]:
    """The directories that commands may write beside the working one and the temporary ones."""
    return policy.writable_roots if isinstance(policy, WorkspaceWrite) else ()


def describe_sandbox(policy: SandboxPolicy) -> str:
    """A policy in one line, with the directories that can be written beside the working directory."""
    match policy:
        case ReadOnly():
            return "read-only"
        case DangerFullAccess():
            return "danger-full-access"
        case WorkspaceWrite():
            extra = [] if policy.exclude_slash_tmp else ["/tmp"]
            extra += [] if policy.exclude_tmpdir_env_var else ["$TMPDIR"]
            writable = ", ".join(["workdir", *extra, *map(str, policy.writable_roots)])
            network = {True: " (network access enabled)", "loopback": " (network: loopback only)"}
            commits = " (commits allowed)" if policy.git else ""
            return f"workspace-write [{writable}]{network.get(policy.network_access, '')}{commits}"


def approval_name(policy: ApprovalPolicy) -> str:
    """The word for an approval policy."""
    return GRANULAR if isinstance(policy, GranularApproval) else policy


def approval_payload(policy: ApprovalPolicy) -> str | dict[str, Any]:
    """An approval policy as it is written in files."""
    return {GRANULAR: dict(vars(policy))} if isinstance(policy, GranularApproval) else policy


def asks_about(policy: ApprovalPolicy, question_type: QuestionType) -> bool:
    """Whether questions of a kind are put to the user at all."""
    return bool(vars(policy)[question_type]) if isinstance(policy, GranularApproval) else policy != "never"

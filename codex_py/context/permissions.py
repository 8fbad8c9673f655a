"""`<permissions instructions>`: what the sandbox allows, and whether the model may ask for more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from codex_py.context.markup import quoted
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    GranularApproval,
    NetworkAccess,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
    mode_of,
)

_MAX_ROOTS: Final = 32

_NETWORK_OFF: Final = (
    "Network access is restricted: commands cannot reach any host, so downloads and remote services fail."
)
_NETWORK_LOOPBACK: Final = (
    "Network access is restricted to the loopback interface: a command can talk to servers it starts itself, to no "
    "other host."
)
_NETWORK_ON: Final = "Network access is enabled."


def render_permissions(policy: SandboxPolicy, approval: ApprovalPolicy, *, writable_roots: Sequence[Path] = ()) -> str:
    """The block for a policy. `writable_roots` are all directories commands may write to, as the sandbox resolved them.

    At most 32 of them are named.
    """
    lines = [f"`sandbox_mode` is `{mode_of(policy)}`: {_filesystem(policy)}", *_roots(policy, writable_roots)]
    lines += [_network(policy), _approval(approval)]
    return "\n".join(["<permissions instructions>", *lines, "</permissions instructions>"])


def _filesystem(policy: SandboxPolicy) -> str:
    match policy:
        case ReadOnly():
            return "commands and patches can read files and cannot create, change or delete any."
        case WorkspaceWrite():
            held = (
                "`.codex` and `.agents` stay read-only, and so do the settings and hooks in `.git`: git can commit, "
                "but cannot change its settings (`push -u`, `remote add`, `submodule add`)."
            )
            if not policy.git:
                held = "`.git`, `.codex` and `.agents` stay read-only, so git cannot commit, stage or switch branches."
            return (
                "commands and patches can read files, and can write below the writable roots only. "
                f"Below a root, {held}"
            )
        case DangerFullAccess():
            return "there is no sandbox; commands act with all rights of the user, so weigh each before running it."


def _roots(policy: SandboxPolicy, roots: Sequence[Path]) -> list[str]:
    if not isinstance(policy, WorkspaceWrite) or not roots:
        return []
    named = [quoted(str(root)) for root in dict.fromkeys(roots)]
    more = [f"{len(named) - _MAX_ROOTS} more"] if len(named) > _MAX_ROOTS else []
    return [f"The writable roots are {', '.join(named[:_MAX_ROOTS] + more)}."]


def _network(policy: SandboxPolicy) -> str:
    access: NetworkAccess = isinstance(policy, DangerFullAccess)
    if isinstance(policy, WorkspaceWrite):
        access = policy.network_access
    if access == "loopback":
        return _NETWORK_LOOPBACK
    return _NETWORK_ON if access else _NETWORK_OFF


def _approval(policy: ApprovalPolicy) -> str:
    match policy:
        case "never":
            return (
                "The approval policy is `never`: nobody can be asked during this session. Leave out "
                "`sandbox_permissions`; a request for more rights is turned down. When the sandbox stops a command, "
                "reach the goal inside it or report what was stopped and what the user can do about it."
            )
        case "on-request":
            return (
                "The approval policy is `on-request`: commands run in the sandbox without a question. When a command "
                "the task needs cannot work inside it, call it again with `sandbox_permissions` set to "
                "`require_escalated` and a `justification` of one sentence; the user decides. Ask only for what the "
                "task needs, and take a no as final."
            )
        case "on-failure":
            return (
                "The approval policy is `on-failure`: commands run in the sandbox, and when one is stopped there the "
                "user is asked whether it may run again outside. Do not send such a command again yourself, and take "
                "a no as final."
            )
        case "untrusted":
            return (
                "The approval policy is `untrusted`: the user is asked before every command that is not known to only "
                "read. Use few and plain commands, so that each is easy to judge, and take a no as final."
            )
        case GranularApproval():
            return (
                "The approval policy is `granular`: commands run in the sandbox without a question. "
                f"{_leaving(policy)} {_ruled(policy)} Take a no as final."
            )


def _leaving(policy: GranularApproval) -> str:
    if not policy.sandbox_approval:
        return (
            "Nobody is asked about leaving it, nor about dangerous commands: both are turned down, so leave out "
            "`sandbox_permissions` and report what was stopped."
        )
    return (
        "When one is stopped there, the user is asked whether it may run again outside. When a command the task needs "
        "cannot work inside, call it with `sandbox_permissions` set to `require_escalated` and a `justification` of "
        "one sentence; the user decides."
    )


def _ruled(policy: GranularApproval) -> str:
    ruled = "are asked about" if policy.rules else "are turned down"
    more = "can be asked for" if policy.request_permissions else "cannot be had"
    return f"Commands for which a rule of the user demands it {ruled}; more permissions for the turn {more}."

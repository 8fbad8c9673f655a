"""The settings of a thread: read from the parameters of requests, and sent to the client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from codex_py.config.model_sections import REASONING_EFFORT, REASONING_SUMMARY
from codex_py.config.schema import APPROVAL_POLICIES, SANDBOX_MODES, Config
from codex_py.core.session_request import ResumeTarget
from codex_py.core.turn_context import TurnSettings
from codex_py.protocol.encoding import as_object
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import (
    ApprovalPolicy,
    DangerFullAccess,
    GranularApproval,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
    approval_payload,
)
from codex_py.server.messages import Params, RpcError, here
from codex_py.server.threads import Opening

_APPROVAL: Final = "approvalPolicy"
_SANDBOX: Final = "sandboxPolicy"
_SANDBOXES: Final = ("readOnly", "workspaceWrite", "dangerFullAccess", "externalSandbox")
_GRANULAR_FLAGS: Final = ("sandbox_approval", "rules", "mcp_elicitations", "skill_approval", "request_permissions")


def read_approval(params: Params) -> ApprovalPolicy | None:
    """The approval policy among the parameters."""
    value = params.raw(_APPROVAL)
    if not isinstance(value, dict):
        return params.choice(_APPROVAL, APPROVAL_POLICIES)
    table = Params(as_object(cast("object", value)), f"{_APPROVAL}.")
    granular = table.nested("granular")
    if granular is None:
        raise table.missing("granular")
    return GranularApproval(**{flag: granular.flag(flag) for flag in _GRANULAR_FLAGS})


def read_sandbox(params: Params) -> SandboxPolicy | None:
    """The sandbox policy among the parameters. A read-only one has no network here."""
    policy = params.nested(_SANDBOX)
    if policy is None:
        return None
    match policy.choice("type", _SANDBOXES):
        case "readOnly":
            if policy.flag("networkAccess"):
                raise RpcError(f"`{_SANDBOX}` asks for a network, which the read-only sandbox does not have")
            return ReadOnly()
        case "workspaceWrite":
            return WorkspaceWrite(
                writable_roots=policy.absolute_paths("writableRoots"),
                network_access=policy.flag("networkAccess"),
                exclude_tmpdir_env_var=policy.flag("excludeTmpdirEnvVar"),
                exclude_slash_tmp=policy.flag("excludeSlashTmp"),
                git=policy.flag("git"),
            )
        case "dangerFullAccess" | "externalSandbox":
            # The client has a sandbox of its own, so commands get no second one.
            return DangerFullAccess()
        case _:
            raise policy.missing("type")


def sandbox_payload(policy: SandboxPolicy) -> dict[str, Any]:
    match policy:
        case ReadOnly():
            return {"type": "readOnly", "networkAccess": False}
        case DangerFullAccess():
            return {"type": "dangerFullAccess"}
        case WorkspaceWrite(roots, network, no_tmpdir, no_tmp, commits):
            return {
                "type": "workspaceWrite",
                "writableRoots": [str(root) for root in roots],
                # The protocol knows no loopback-only network.
                "networkAccess": network is True,
                "excludeTmpdirEnvVar": no_tmpdir,
                "excludeSlashTmp": no_tmp,
                # The protocol has no such field.
                **({"git": True} if commits else {}),
            }


def settings_payload(settings: TurnSettings, config: Config) -> dict[str, Any]:
    """The settings of the next turn."""
    model = settings.model
    mode = {"model": model.model, "reasoning_effort": model.effort, "developer_instructions": None}
    return {
        **_shared_payload(settings, config),
        "environments": None,
        "sandboxPolicy": sandbox_payload(settings.sandbox_policy),
        "effort": model.effort,
        "summary": model.summary,
        "collaborationMode": {"mode": "plan" if settings.plan else "default", "settings": mode},
        "personality": config.personality,
    }


def opening_payload(settings: TurnSettings, config: Config) -> dict[str, Any]:
    """The settings that are returned with an opened thread."""
    return {
        **_shared_payload(settings, config),
        "runtimeWorkspaceRoots": [str(settings.cwd)],
        "instructionSources": [],
        "sandbox": sandbox_payload(settings.sandbox_policy),
        "reasoningEffort": settings.model.effort,
    }


def _shared_payload(settings: TurnSettings, config: Config) -> dict[str, Any]:
    return {
        "model": settings.model.model,
        "modelProvider": config.model_provider,
        "serviceTier": settings.model.service_tier,
        "disabledPluginIds": [],
        "cwd": str(settings.cwd),
        "approvalPolicy": approval_payload(settings.approval),
        # Only the user reviews approvals here, whatever the client asks for.
        "approvalsReviewer": "user",
        "activePermissionProfile": None,
        "multiAgentMode": "explicitRequestOnly",
    }


# Which parameter sets which key of the configuration.
_KEYS: Final[Mapping[str, str]] = {
    "model": "model",
    "modelProvider": "model_provider",
    "serviceTier": "service_tier",
    "developerInstructions": "developer_instructions",
    "personality": "personality",
    "permissions": "default_permissions",
}
# Parameters that cannot be honoured: a request that sets one is refused.
_REFUSED: Final = ("dynamicTools", "history", "selectedCapabilityRoots")


def read_opening(params: Params, *, originator: str, target: ResumeTarget | None = None) -> Opening:
    """The session that a client asks for. Raises `RpcError`."""
    for name in _REFUSED:
        if params.raw(name):
            raise RpcError(f"`{name}` is not supported")
    return Opening(
        cwd=params.directory("cwd") or here(),
        settings=_config_settings(params),
        target=target,
        ephemeral=params.flag("ephemeral"),
        originator=originator,
        extra_roots=params.absolute_paths("runtimeWorkspaceRoots"),
        instructions=params.text_or_none("baseInstructions"),
    )


def read_override(params: Params) -> OverrideTurnContext | None:
    """The settings that a request changes for its turn and later ones; None for no change. Raises `RpcError`."""
    mode = params.nested("collaborationMode")
    settings = mode.nested("settings") if mode is not None else None
    op = OverrideTurnContext(
        model=(settings and settings.text_or_none("model")) or params.text_or_none("model"),
        effort=(settings and settings.choice("reasoning_effort", REASONING_EFFORT.words))
        or params.choice("effort", REASONING_EFFORT.words),
        summary=params.choice("summary", REASONING_SUMMARY.words),
        sandbox=read_sandbox(params),
        approval=read_approval(params),
        cwd=params.directory("cwd"),
        plan=None if mode is None else mode.choice("mode", ("plan", "default")) == "plan",
    )
    return None if op == OverrideTurnContext() else op


def read_live_override(params: Params) -> OverrideTurnContext | None:
    """The settings that a resume request changes of a live thread; None for no change."""
    op = OverrideTurnContext(
        model=params.text_or_none("model"),
        sandbox=params.choice("sandbox", SANDBOX_MODES),
        approval=read_approval(params),
        cwd=params.directory("cwd"),
    )
    return None if op == OverrideTurnContext() else op


def _config_settings(params: Params) -> dict[str, Any]:
    """The parameters as keys of the configuration; those that have a name of their own beat those in `config`."""
    settings = dict(_without_nulls(params.table("config") or {}))
    for name, key in _KEYS.items():
        if (value := params.text_or_none(name)) is not None:
            settings[key] = value
    if (sandbox := params.choice("sandbox", SANDBOX_MODES)) is not None:
        settings["sandbox_mode"] = sandbox
    if (approval := read_approval(params)) is not None:
        settings["approval_policy"] = approval_payload(approval)
    return settings


def _without_nulls(table: Mapping[str, Any]) -> dict[str, Any]:
    """TOML has no null: what is null is not set."""
    return {
        name: _without_nulls(cast("Mapping[str, Any]", value)) if isinstance(value, dict) else value
        for name, value in table.items()
        if value is not None
    }

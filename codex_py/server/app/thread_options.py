"""What a client wants of a thread it opens, and what may be changed of it, read from the parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.schema import SANDBOX_MODES
from codex_py.config.sections import REASONING_EFFORT, REASONING_SUMMARY
from codex_py.core.session_request import ResumeTarget
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import approval_payload
from codex_py.server.app.policies import read_approval, read_sandbox
from codex_py.server.host import Opening
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

# Which parameter sets which key of the configuration.
_KEYS: Final[Mapping[str, str]] = {
    "model": "model",
    "modelProvider": "model_provider",
    "serviceTier": "service_tier",
    "developerInstructions": "developer_instructions",
    "personality": "personality",
    "permissions": "default_permissions",
}
# What would do something else than the client believes is refused, where it is really asked for.
_REFUSED: Final = ("dynamicTools", "history", "selectedCapabilityRoots")


def read_opening(params: Params, *, cwd: Path, originator: str, target: ResumeTarget | None = None) -> Opening:
    """The session that is asked for, in `cwd` unless the client names a folder. Raises `RpcError`."""
    for name in _REFUSED:
        if params.raw(name):
            raise RpcError(f"`{name}` is not supported")
    roots = tuple(Path(root) for root in params.texts("runtimeWorkspaceRoots") or ())
    if not all(root.is_absolute() for root in roots):
        raise RpcError("invalid request: `runtimeWorkspaceRoots` has a path that is not absolute")
    return Opening(
        cwd=params.directory("cwd") or cwd,
        settings=_config_settings(params),
        target=target,
        ephemeral=params.flag("ephemeral"),
        originator=originator,
        source="vscode",
        extra_roots=roots,
        instructions=params.text_or_none("baseInstructions"),
    )


def read_override(params: Params) -> OverrideTurnContext | None:
    """What a turn changes for itself and those after it; None when that is nothing. Raises `RpcError`."""
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
    """What the parameters of an opening change of a thread that is open; None when that is nothing."""
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

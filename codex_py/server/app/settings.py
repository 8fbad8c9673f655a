"""The settings of a thread in the protocol's words."""

from __future__ import annotations

from typing import Any

from codex_py.config.schema import Config
from codex_py.core.turn_context import TurnSettings
from codex_py.server.app.policies import approval_value, sandbox_payload


def settings_payload(settings: TurnSettings, config: Config, plan: bool) -> dict[str, Any]:
    """What holds from the next turn on."""
    model = settings.model
    mode = {"model": model.model, "reasoning_effort": model.effort, "developer_instructions": None}
    return {
        "disabledPluginIds": [],
        "cwd": str(settings.cwd),
        "environments": None,
        "approvalPolicy": approval_value(settings.approval),
        "approvalsReviewer": "user",
        "sandboxPolicy": sandbox_payload(settings.sandbox_policy),
        "activePermissionProfile": None,
        "model": model.model,
        "modelProvider": config.model_provider,
        "serviceTier": model.service_tier,
        "effort": model.effort,
        "summary": model.summary,
        "collaborationMode": {"mode": "plan" if plan else "default", "settings": mode},
        "multiAgentMode": "explicitRequestOnly",
        "personality": config.personality,
    }


def opening_payload(settings: TurnSettings, config: Config) -> dict[str, Any]:
    """The settings beside a thread that was opened."""
    return {
        "model": settings.model.model,
        "modelProvider": config.model_provider,
        "serviceTier": settings.model.service_tier,
        "disabledPluginIds": [],
        "cwd": str(settings.cwd),
        "runtimeWorkspaceRoots": [str(settings.cwd)],
        "instructionSources": [],
        "approvalPolicy": approval_value(settings.approval),
        # Nobody else answers here, whoever the client would like to.
        "approvalsReviewer": "user",
        "sandbox": sandbox_payload(settings.sandbox_policy),
        "activePermissionProfile": None,
        "reasoningEffort": settings.model.effort,
        "multiAgentMode": "explicitRequestOnly",
    }

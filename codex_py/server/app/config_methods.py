"""Requests about settings, models and the login. No secret is ever sent."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from codex_py.config.effective import effective_values
from codex_py.config.keys import parse_key
from codex_py.config.layers import Layer
from codex_py.config.schema import Config
from codex_py.core.model_setup import ModelFacts, known_facts
from codex_py.server.app.client_context import ClientContext, MethodResult, page_of
from codex_py.server.messages import Params, RpcError, here, here_or_root
from codex_py.services.login import forget_login, keep_key, login_status, login_store
from codex_py.services.models import known_models

_EFFORTS: Final = ("low", "medium", "high")
_PLANS: Final = ("free", "go", "plus", "pro", "team", "business", "enterprise", "edu")
_MAX_MODELS: Final = 1000


async def read_config(context: ClientContext, params: Params) -> MethodResult:
    """`config/read`: the settings in force for a directory, and where each comes from."""
    cwd = params.directory("cwd") or here()
    loaded = await asyncio.to_thread(context.host.load, cwd, {})
    tree: dict[str, Any] = {}
    origins: dict[str, Any] = {}
    for value in effective_values(loaded):
        if value.layer.layer_type != "defaults":
            _put(tree, parse_key(value.key), value.value)
            origins[value.key] = {"name": _layer(value.layer), "version": ""}
        elif value.value is not None:
            _put(tree, parse_key(value.key), value.value)
    layers = None
    if params.flag("includeLayers"):
        layers = [
            {"name": _layer(layer), "version": "", "config": {}, "disabledReason": None}
            for layer in loaded.layers
            if layer.layer_type != "defaults"
        ]
    return MethodResult({"config": {**dict.fromkeys(_EXPECTED), **tree}, "origins": origins, "layers": layers})


async def list_models(context: ClientContext, params: Params) -> MethodResult:
    """`model/list`: the models that are known for the configured provider, without asking it."""
    provider = params.text_or_none("modelProvider")
    chosen = {} if provider is None else {"model_provider": provider}
    config = await _load_config(context, chosen)
    names = known_models(config)
    models = [_model(name, known_facts(config, name, None), is_first=not index) for index, name in enumerate(names)]
    return MethodResult(page_of(models, params, max_size=_MAX_MODELS, size=_MAX_MODELS))


async def read_account(context: ClientContext, params: Params) -> MethodResult:
    """`account/read`: who is signed in."""
    config = await _load_config(context, {})
    status = await asyncio.to_thread(lambda: login_status(config, env=context.host.env, home=context.host.home))
    account: dict[str, Any] | None = None
    if status.method == "key":
        account = {"type": "apiKey"}
    elif status.method == "chatgpt":
        plan = status.plan if status.plan in _PLANS else "unknown"
        account = {"type": "chatgpt", "email": status.email or None, "planType": plan, "workspaceName": None}
    payload = {"account": account, "userId": None, "requiresOpenaiAuth": status.is_needed, "workspaceRouting": None}
    return MethodResult(payload)


async def log_in(context: ClientContext, params: Params) -> MethodResult:
    """`account/login/start`: keeps an API key; for the other ways there is `codex-py login`."""
    if params.choice("type", ("apiKey", "chatgpt", "chatgptDeviceCode", "chatgptAuthTokens")) != "apiKey":
        raise RpcError("only `apiKey` is supported: sign in with `codex-py login` in a terminal")
    config = await _load_config(context, {})
    await keep_key(config, params.text("apiKey"), home=context.host.home)

    def notify() -> None:
        done = {"loginId": None, "success": True, "error": None}
        context.connection.notify("account/login/completed", done)
        context.connection.notify("account/updated", {"authMode": "apikey", "planType": None})

    return MethodResult({"type": "apiKey"}, notify)


async def log_out(context: ClientContext, params: Params) -> MethodResult:
    """`account/logout`"""
    config = await _load_config(context, {})
    await forget_login(login_store(config, context.host.home), home=context.host.home, env=context.host.env)
    signed_out = {"authMode": None, "planType": None}
    return MethodResult({}, partial(context.connection.notify, "account/updated", signed_out))


async def _load_config(context: ClientContext, settings: Mapping[str, Any]) -> Config:
    """The user's configuration: only a project's settings could depend on the directory."""
    return (await asyncio.to_thread(context.host.load, here_or_root(), settings)).config


# Keys that clients may rely on, null where they are not set.
_EXPECTED: Final = (
    *("model", "review_model", "model_context_window", "model_auto_compact_token_limit", "model_provider"),
    *("model_auto_compact_token_limit_scope", "approval_policy", "approvals_reviewer", "sandbox_mode"),
    *("sandbox_workspace_write", "forced_chatgpt_workspace_id", "forced_login_method", "web_search", "tools"),
    *("client_search_provider", "instructions", "developer_instructions", "compact_prompt", "analytics", "apps"),
    *("model_reasoning_effort", "model_reasoning_summary", "model_verbosity", "service_tier"),
    *("browser_use", "computer_use", "desktop", "profile"),
)


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value


def _layer(layer: Layer) -> dict[str, Any]:
    """Where settings come from, in the protocol's words."""
    file = str(layer.path)
    match layer.layer_type:
        case "user" | "profile":
            return {"type": "user", "file": file, "profile": None}
        case "project":
            directory = None if layer.path is None else layer.path.parent
            return {"type": "project", "dotCodexFolder": str(directory)}
        case "system":
            return {"type": "system", "file": file}
        case "managed":
            return {"type": "legacyManagedConfigTomlFromFile", "file": file}
        case "flags" | "defaults":
            return {"type": "sessionFlags"}


def _model(name: str, facts: ModelFacts, *, is_first: bool) -> dict[str, Any]:
    efforts = _EFFORTS if facts.effort is not None else ("none",)
    return {
        "id": name,
        "model": name,
        "upgrade": None,
        "upgradeInfo": None,
        "availabilityNux": None,
        "displayName": name,
        "description": f"context window of {facts.context_window:,} tokens" if facts.known else "",
        "modelSpecialty": None,
        "hidden": False,
        "supportedReasoningEfforts": [{"reasoningEffort": effort, "description": ""} for effort in efforts],
        "defaultReasoningEffort": facts.effort or "none",
        "inputModalities": ["text", "image"] if facts.images else ["text"],
        "supportsPersonality": False,
        "multiAgentVersion": None,
        "additionalSpeedTiers": [],
        "serviceTiers": [],
        "defaultServiceTier": None,
        "availableAccessPrograms": None,
        "isDefault": is_first,
    }

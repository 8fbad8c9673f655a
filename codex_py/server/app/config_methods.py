"""Requests about settings, models and the login. Nothing secret is ever told."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from codex_py.config.effective import effective_values
from codex_py.config.keys import parse_key
from codex_py.config.layers import Layer
from codex_py.core.model_connection import ModelFacts, known_facts
from codex_py.core.offered_models import known_models
from codex_py.core.own_login import forget_login, keep_key, login_status, login_store
from codex_py.server.app.desk import Answered, Desk
from codex_py.server.messages import RpcError
from codex_py.server.params import Params, here, here_or_root

_EFFORTS: Final = ("low", "medium", "high")
_PLANS: Final = ("free", "go", "plus", "pro", "team", "business", "enterprise", "edu")
_MOST_MODELS: Final = 1000


async def read_config(desk: Desk, params: Params) -> Answered:
    """`config/read`: the settings in force for a folder, and where each comes from."""
    cwd = params.folder("cwd") or here()
    loaded = await asyncio.to_thread(desk.host.load, cwd, {})
    tree: dict[str, Any] = {}
    origins: dict[str, Any] = {}
    for one in effective_values(loaded):
        if one.layer.kind != "defaults":
            _put(tree, parse_key(one.key), one.value)
            origins[one.key] = {"name": _layer(one.layer), "version": ""}
        elif one.value is not None:
            _put(tree, parse_key(one.key), one.value)
    layers = None
    if params.flag("includeLayers"):
        layers = [
            {"name": _layer(layer), "version": "", "config": {}, "disabledReason": None}
            for layer in loaded.layers
            if layer.kind != "defaults"
        ]
    return Answered({"config": {**dict.fromkeys(_EXPECTED), **tree}, "origins": origins, "layers": layers})


async def list_models(desk: Desk, params: Params) -> Answered:
    """`model/list`: the models that are known for the configured provider, without asking it."""
    provider = params.text_or_none("modelProvider")
    chosen = {} if provider is None else {"model_provider": provider}
    config = (await asyncio.to_thread(desk.host.load, here_or_root(), chosen)).config
    names = known_models(config)
    told = [_model(name, known_facts(config, name, None), is_first=not place) for place, name in enumerate(names)]
    cursor = params.text_or_none("cursor") or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RpcError(f"invalid cursor: `{cursor[:80]}`")
    end = int(cursor) + (params.whole("limit", most=_MOST_MODELS) or _MOST_MODELS)
    return Answered({"data": told[int(cursor) : end], "nextCursor": str(end) if end < len(told) else None})


async def read_account(desk: Desk, params: Params) -> Answered:
    """`account/read`: who is signed in."""
    config = (await asyncio.to_thread(desk.host.load, here_or_root(), {})).config
    status = await asyncio.to_thread(lambda: login_status(config, env=desk.host.env, home=desk.host.home))
    account: dict[str, Any] | None = None
    if status.kind == "key":
        account = {"type": "apiKey"}
    elif status.kind == "chatgpt":
        plan = status.plan if status.plan in _PLANS else "unknown"
        account = {"type": "chatgpt", "email": status.email or None, "planType": plan, "workspaceName": None}
    told = {"account": account, "userId": None, "requiresOpenaiAuth": status.is_needed, "workspaceRouting": None}
    return Answered(told)


async def log_in(desk: Desk, params: Params) -> Answered:
    """`account/login/start`: keeps an API key; for the other ways there is `codex-py login`."""
    if params.one_of("type", ("apiKey", "chatgpt", "chatgptDeviceCode", "chatgptAuthTokens")) != "apiKey":
        raise RpcError("only `apiKey` is supported: sign in with `codex-py login` in a terminal")
    config = (await asyncio.to_thread(desk.host.load, here_or_root(), {})).config
    await keep_key(config, params.text("apiKey"), home=desk.host.home)

    async def tell() -> None:
        done = {"loginId": None, "success": True, "error": None}
        desk.connection.notify("account/login/completed", done)
        desk.connection.notify("account/updated", {"authMode": "apikey", "planType": None})

    return Answered({"type": "apiKey"}, tell)


async def log_out(desk: Desk, params: Params) -> Answered:
    """`account/logout`"""
    config = (await asyncio.to_thread(desk.host.load, here_or_root(), {})).config
    await forget_login(login_store(config, desk.host.home), home=desk.host.home, env=desk.host.env)

    async def tell() -> None:
        desk.connection.notify("account/updated", {"authMode": None, "planType": None})

    return Answered({}, tell)


# Keys that a client may rely on, null where nobody has set them.
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
    match layer.kind:
        case "user" | "profile":
            return {"type": "user", "file": file, "profile": None}
        case "project":
            folder = None if layer.path is None else layer.path.parent
            return {"type": "project", "dotCodexFolder": str(folder)}
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
        "supportedReasoningEfforts": [{"reasoningEffort": one, "description": ""} for one in efforts],
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

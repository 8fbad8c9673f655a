"""How a session reaches its model: the login that the configuration allows, and the model that is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from codex_py import __version__
from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.core.installation import installation_id
from codex_py.core.model_settings import choose_model, default_model
from codex_py.errors import LoginNeeded
from codex_py.model.auth import Credentials, LoginRules, find_credentials
from codex_py.model.catalog import ModelFacts, facts_for
from codex_py.model.client import ModelClient
from codex_py.model.providers import Provider, resolve_provider

if TYPE_CHECKING:
    from codex_py.model.local_model import LocalChoice


def login_rules(config: Config) -> LoginRules:
    """What the configuration says about logins."""
    return LoginRules(
        store=config.cli_auth_credentials_store,
        method=config.forced_login_method,
        workspaces=config.forced_chatgpt_workspace_id,
        chatgpt_url=config.chatgpt_base_url,
    )


def has_login(config: Config, *, env: Mapping[str, str], home: Path) -> bool:
    """Whether there is what lets the configured provider answer: a key, a login, or nothing where it asks for nothing.

    Raises `UserError` for a login that cannot be used.
    """
    if config.model_provider == "offline":
        return True
    provider = resolve_provider(
        config.model_provider,
        configured=config.model_providers,
        env=env,
        openai_base_url=config.openai_base_url,
    )
    try:
        find_credentials(provider, env=env, home=home, rules=login_rules(config))
    except LoginNeeded:
        return False
    return True


def connect_model(
    provider: Provider,
    credentials: Credentials,
    *,
    rules: LoginRules,
    env: Mapping[str, str],
    home: Path,
    originator: str,
) -> ModelClient:
    """A client for the provider, which renews credentials that can be renewed."""
    renewal = None
    if credentials.is_renewable:
        from codex_py.model.renewal import LoginContext, find_renewal  # the seam: a key stays what it is

        renewal = find_renewal(credentials, LoginContext(provider, env, home, rules))
    return ModelClient(
        provider,
        credentials,
        originator=originator,
        version=__version__,
        renewal=renewal,
        installation_id=installation_id(home),
    )


async def find_local_model(loaded: LoadedConfig, provider: Provider) -> LocalChoice | None:
    """Which model a server on this machine is asked for; None for a provider that does not run here."""
    if provider.id not in ("ollama", "lmstudio"):
        return None
    from codex_py.model.local_model import choose_local_model  # the seam: only where the server is asked first

    flagged = [name for name in ("model", "model_provider") if loaded.origins[name].layer_type == "flags"]
    return await choose_local_model(
        provider,
        requested=choose_model(loaded.config, provider),
        default=default_model(provider),
        # With `--oss` alone, the model in a file was meant for another provider.
        insist=loaded.config.model is not None and flagged != ["model_provider"],
    )


def read_own_catalog(config: Config) -> Mapping[str, ModelFacts]:
    """What the user's catalogue file says, empty without one. Raises `UserError` for a file that is none."""
    if config.model_catalog_json is None:
        return {}
    from codex_py.model.catalog_file import read_catalog  # the seam: few have such a file

    return read_catalog(config.model_catalog_json)


def known_facts(config: Config, model: str, local: LocalChoice | None) -> ModelFacts:
    """What is known about a model: the user's entries, their catalogue file, the built-in table, the server itself."""
    facts = facts_for(model, overrides=config.models, catalog=read_own_catalog(config))
    if not facts.known and local is not None and local.context_window is not None:
        return facts.replace(context_window=local.context_window)
    return facts

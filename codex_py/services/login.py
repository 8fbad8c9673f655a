"""The login of this machine: who is signed in, without secrets; storing a key; signing out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codex_py.auth.find_credentials import KEY_ENV_NAMES, LoginRules, check_key, stored_credentials
from codex_py.auth.login_store import PROVIDER_KEYS_FILE, LoginStore, locked_login, open_store
from codex_py.auth.oauth import account_of, issuer_of, key_login, revoke_token, stored_tokens
from codex_py.config.schema import Config
from codex_py.core.model_setup import configured_provider, login_rules
from codex_py.errors import ModelError, UsageError, UserError
from codex_py.model.providers import HOSTED
from codex_py.text.nearest import did_you_mean


class LoginStatus(NamedTuple):
    """The login in use; `method` is None if nobody is signed in. `email` and `plan` of a ChatGPT login may be empty.

    `is_needed` says that the provider requires an OpenAI login or key.
    """

    method: Literal["key", "chatgpt"] | None
    email: str = ""
    plan: str = ""
    is_needed: bool = True


def login_status(config: Config, *, env: Mapping[str, str], home: Path) -> LoginStatus:
    """The login for the configured provider. Raises `UserError` for one that cannot be read."""
    provider = configured_provider(config, env)
    if not provider.needs_key:
        return LoginStatus(None, is_needed=False)
    rules = login_rules(config)
    if rules.method != "chatgpt" and any(env.get(name, "").strip() for name in KEY_ENV_NAMES):
        return LoginStatus("key")
    store = open_store(rules.store, home)
    stored = store.load()
    found = stored_credentials(stored, store.where, rules)
    if found is None:
        return LoginStatus(None)
    if not found.is_chatgpt:
        return LoginStatus("key")
    tokens = stored_tokens(stored)
    account = account_of((tokens.identity or tokens.access) if tokens else "")
    return LoginStatus("chatgpt", account.email, account.plan)


async def keep_key(config: Config, key: str, *, home: Path) -> None:
    """Store an API key as the login. Raises `UserError` for an invalid key, and where keys are not allowed."""
    rules = login_rules(config)
    if rules.method == "chatgpt":
        raise UserError("only a ChatGPT login may be used here (`forced_login_method`)")
    checked = check_key(key, "the request")
    if not checked:
        raise UserError("the API key is empty")
    store = open_store(rules.store, home)
    async with locked_login(home):
        await asyncio.to_thread(store.save, key_login(checked))


class KeyedProvider(NamedTuple):
    """A provider with keys: its id, what it is called, and the variable of its key."""

    id: str
    name: str
    variable: str


def keyed_providers() -> tuple[KeyedProvider, ...]:
    """The providers whose key is enough to use them, OpenAI first."""
    hosted = (KeyedProvider(id_, each.name, each.env_key) for id_, each in HOSTED.items() if each.env_key)
    return (KeyedProvider("openai", "OpenAI", KEY_ENV_NAMES[1]), *hosted)


def find_keyed_provider(provider: str) -> KeyedProvider:
    """The provider with this id. Raises `UsageError` for one that takes no stored key."""
    known = {each.id: each for each in keyed_providers()}
    if provider not in known:
        hint = did_you_mean(provider, tuple(known)) or f"known are {', '.join(f'`{name}`' for name in known)}"
        raise UsageError(f"no key can be stored for the provider `{provider}`", hint=hint)
    return known[provider]


async def keep_provider_key(provider: KeyedProvider, key: str, *, home: Path, rules: LoginRules) -> LoginStore:
    """Store a checked key of a provider other than OpenAI beside the others; gives back where they are."""
    store = provider_key_store(rules, home)
    async with locked_login(home):
        await asyncio.to_thread(lambda: store.save({**store.load(), provider.variable: key}))
    return store


def stored_provider_keys(store: LoginStore) -> dict[str, str]:
    """The stored keys of providers by the names of their variables."""
    known = {each.variable for each in keyed_providers()}
    return {name: key for name, key in store.load().items() if name in known and isinstance(key, str) and key}


def provider_key_store(rules: LoginRules, home: Path) -> LoginStore:
    """The store of the keys of providers other than OpenAI."""
    return open_store(rules.store, home, PROVIDER_KEYS_FILE)


async def forget_login(store: LoginStore, *, home: Path, env: Mapping[str, str]) -> tuple[bool, str | None]:
    """Remove the stored login, and revoke a ChatGPT login, so that no copy of it works.

    Gives back whether there was one, and a warning if it could not be revoked.
    """
    async with locked_login(home):
        warning = await _revoke(_stored(store), env)
        was_there = await asyncio.to_thread(store.remove)
    return was_there, warning


def login_store(config: Config, home: Path) -> LoginStore:
    """The store in which the settings keep the login."""
    return open_store(login_rules(config).store, home)


def _stored(store: LoginStore) -> Mapping[str, Any]:
    try:
        return store.load()
    except UserError:
        # Broken, and about to be removed.
        return {}


async def _revoke(stored: Mapping[str, Any], env: Mapping[str, str]) -> str | None:
    """Ask the issuer to end the login; gives back what went wrong."""
    tokens = stored_tokens(stored)
    if tokens is None or stored.get("auth_mode") == "apikey":
        return None
    try:
        issuer = issuer_of(stored, env)
        if tokens.refresh:
            await revoke_token(issuer, tokens.refresh, token_type="refresh_token")
        else:
            await revoke_token(issuer, tokens.access, token_type="access_token")
    except (ModelError, UserError) as error:
        return f"warning: {error}; it is forgotten here, and ends by itself or at the issuer"
    return None

"""What could answer where nothing is set up: keys in the environment, and servers of models on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.schema import Config
from codex_py.core.model_setup import default_model
from codex_py.errors import ModelError, UserError
from codex_py.model.credentials import Credentials
from codex_py.model.model_list import list_models
from codex_py.model.providers import HOSTED, resolve_provider
from codex_py.services.login import KeyedProvider, keyed_providers
from codex_py.services.models import offered_models
from codex_py.text.address import shown_url

# In the order in which they are offered.
_LOCAL: Final = ("ollama", "lmstudio", "llamacpp", "vllm")
_PROBE_SECONDS: Final = 0.7
_MAX_MODELS: Final = 500


class LocalServer(NamedTuple):
    """A server on this machine that answers; `models` are those that can hold a conversation."""

    provider: str
    name: str
    address: str
    models: tuple[str, ...]


def keys_in_environment(env: Mapping[str, str]) -> tuple[KeyedProvider, ...]:
    """The providers whose key is in the environment."""
    return tuple(provider for provider in keyed_providers() if env.get(provider.variable, "").strip())


async def find_local_servers(config: Config, env: Mapping[str, str]) -> tuple[LocalServer, ...]:
    """The servers of models that answer on this machine within a moment, one for each address."""
    found = await asyncio.gather(*(_probe(name, config, env) for name in _LOCAL))
    return tuple({server.address: server for server in reversed(found) if server}.values())[::-1]


async def _probe(name: str, config: Config, env: Mapping[str, str]) -> LocalServer | None:
    try:
        provider = resolve_provider(name, configured=config.model_providers, env=env)
        async with asyncio.timeout(_PROBE_SECONDS):
            offered = await list_models(provider, Credentials(), seconds=_PROBE_SECONDS)
    except (ModelError, UserError, TimeoutError):
        return None
    models = tuple(model.id for model in offered if "embed" not in model.id.lower())
    return LocalServer(name, provider.name, shown_url(provider.base_url), models[:_MAX_MODELS])


def has_default_model(provider: str, config: Config) -> bool:
    """Whether a model of a provider need not be chosen."""
    hosted = HOSTED.get(provider)
    if config.model and config.model_provider == provider:
        return True
    return not config.model and bool(hosted.model if hosted else provider == "openai")


def usual_model(provider: str, config: Config, env: Mapping[str, str]) -> str:
    """The model that a provider is asked when the user has chosen none; empty where there is none."""
    return default_model(resolve_provider(provider, configured=config.model_providers, env=env))


async def models_to_choose(provider: str, config: Config, *, env: Mapping[str, str], home: Path) -> tuple[str, ...]:
    """The models that a provider offers; none where it does not list them."""
    try:
        offered = await offered_models(config, provider, env=env, home=home)
    except UserError:
        return ()
    return tuple(row.id for row in offered.rows[:_MAX_MODELS])

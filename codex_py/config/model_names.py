"""Names of models as people write them: `MODEL`, or `PROVIDER/MODEL` for a model of another provider."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from codex_py.config.layers import Checked, Layer, merge
from codex_py.config.schema import BUILT_IN_PROVIDERS, HOSTED_PROVIDERS
from codex_py.errors import ConfigError
from codex_py.text.nearest import did_you_mean

# Providers whose ids are also part of names of models at other servers: `openai/gpt-oss-20b`.
_VENDORS: Final = frozenset({"openai", "anthropic", "deepseek", "mistral", "gemini"})
_OPENROUTER: Final = "openrouter"
_FLAGS: Final = Layer("flags")


def split_model(
    name: str, *, configured: Collection[str], current: str, is_gateway: bool = False
) -> tuple[str | None, str]:
    """The provider and the model that a name means; None for the provider that is asked now, `current`.

    The part before the first slash counts if it is the id of a provider. Ids of vendors are also part of names of
    models (`openai/gpt-oss-20b`): they count only if the models of `current` have no such names, or if the user has
    configured that provider. `is_gateway` says that `current` is at an address of the user's, which may know such
    names too. Raises `ConfigError` for a provider without a model.
    """
    name = name.strip()
    provider, slash, model = (part.strip() for part in name.partition("/"))
    if not slash or provider not in _providers(configured):
        return None, name
    if not model:
        raise ConfigError(
            f"`{name}` names a provider but no model",
            hint=f"write `{provider}/MODEL`; `codex-py models --provider {provider}` lists what it offers",
        )
    if provider in _VENDORS and _knows_vendors(provider, configured, current, is_gateway=is_gateway):
        return None, name
    return (None if provider == current else provider), (name if _is_own_name(provider, model) else model)


def named_model(name: str, key: str, *, configured: Collection[str]) -> tuple[str, str]:
    """The provider and the model of a setting that needs both. Raises `ConfigError` if one is missing or unknown."""
    provider, model = split_model(name, configured=configured, current="")
    if provider is not None:
        return provider, model
    prefix, slash, _ = name.strip().partition("/")
    guess = did_you_mean(prefix, _providers(configured)) if slash else None
    raise ConfigError(f"`{name}` in `{key}` names no provider", hint=guess or "write `PROVIDER/MODEL`")


def with_named_provider(layers: Sequence[Checked], name: str, env: Mapping[str, str]) -> list[Checked]:
    """The layers, in which the flag for the model is the name `PROVIDER/MODEL`: with both keys in its layer.

    A provider that a managed file sets stays, and the name as it is. Raises `ConfigError` as `split_model` does.
    """
    at = max(i for i, layer in enumerate(layers) if layer.tree.get("model") == name and layer.source.layer == _FLAGS)
    if any("model_provider" in layer.tree for layer in layers[at + 1 :]):
        return list(layers)
    tree = merge(layers)
    current = str(tree["model_provider"])
    is_gateway = current == "openai" and bool(tree["openai_base_url"] or env.get("OPENAI_BASE_URL", "").strip())
    provider, model = split_model(name, configured=tree["model_providers"], current=current, is_gateway=is_gateway)
    chosen = {"model": model} if provider is None else {"model": model, "model_provider": provider}
    return [*layers[:at], Checked(layers[at].source, {**layers[at].tree, **chosen}), *layers[at + 1 :]]


def _providers(configured: Collection[str]) -> tuple[str, ...]:
    return tuple(
        name for name in dict.fromkeys((*BUILT_IN_PROVIDERS, *HOSTED_PROVIDERS, *configured)) if name != "offline"
    )


def _knows_vendors(vendor: str, configured: Collection[str], current: str, *, is_gateway: bool) -> bool:
    """Whether a name with this vendor in front is a model of the current provider."""
    if not current:
        return False
    if is_gateway or current == _OPENROUTER:
        return True
    return current not in _VENDORS and (vendor not in configured or vendor in BUILT_IN_PROVIDERS)


def _is_own_name(provider: str, model: str) -> bool:
    """Whether the provider itself has its id in the name: `openrouter/auto`, `groq/compound`."""
    return (provider == _OPENROUTER and "/" not in model) or (provider == "groq" and model.startswith("compound"))

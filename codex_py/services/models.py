"""Lists the models that a provider offers, with what is known about each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.auth.find_credentials import find_credentials
from codex_py.auth.renewal import LoginContext, find_renewal
from codex_py.config.schema import Config
from codex_py.core.model_setup import chosen_model, configured_provider, login_rules, read_own_catalog
from codex_py.errors import ModelError, UserError
from codex_py.model.catalog import facts_for, openai_models
from codex_py.model.model_list import list_models
from codex_py.text.nearest import nearest_names

_OFFLINE: Final = "offline"
_RULES: Final = "offline-rules"
_MAX_NEAREST: Final = 3


class ModelRow(NamedTuple):
    """A model and what is known about it; `window` is in tokens."""

    id: str
    is_configured: bool
    is_known: bool
    window: int | None
    description: str


class OfferedModels(NamedTuple):
    """The models of a provider in its own order; `configured` is the one that would be asked."""

    provider: str
    configured: str
    rows: tuple[ModelRow, ...]


def known_models(config: Config) -> tuple[str, ...]:
    """The models of the configured provider that are known without asking it: those that the configuration describes,
    and for OpenAI those of the table.
    """
    if config.model_provider == _OFFLINE:
        return (_RULES,)
    own = (*([config.model] if config.model else []), *config.models, *read_own_catalog(config))
    return tuple(dict.fromkeys((*own, *(openai_models() if config.model_provider == "openai" else ()))))


def well_known_models(config: Config) -> tuple[str, ...]:
    """The models to offer without asking a provider: those of the configuration, of its catalogue, and of OpenAI."""
    own = known_models(config)
    return tuple(dict.fromkeys((*own, *(openai_models() if config.model_provider != _OFFLINE else ()))))


def is_well_known(config: Config, name: str) -> bool:
    """Whether a model is known to exist without asking the provider."""
    return config.model_provider == _OFFLINE or name in (*config.models, *openai_models())


def describe_unknown_model(config: Config, name: str, offered: OfferedModels | None) -> str:
    """What to say of a model that the provider does not offer, with the nearest names; empty for one that it does.

    Of a provider that lists none (`offered` None) it is said when the name is nearly that of a known model.
    """
    listed = [row.id for row in offered.rows] if offered else []
    known = [model for model in (*known_models(config), *openai_models()) if model != name]
    near = nearest_names(name, listed, limit=_MAX_NEAREST) if listed else nearest_names(name, known, limit=1)
    if {name, f"{name}:latest"}.intersection(listed) or not (listed or near):
        return ""
    where = f": `{config.model_provider}` does not list it" if listed else ""
    guess = f"did you mean {' or '.join(f'`{model}`' for model in near)}?" if near else ""
    return "; ".join(filter(None, [f"unknown model `{name}`{where}", guess]))


async def offered_models(config: Config, name: str, *, env: Mapping[str, str], home: Path) -> OfferedModels:
    """Ask the provider `name` for its models. Raises `UserError` when it cannot be reached or does not list them."""
    if name == _OFFLINE:
        return OfferedModels(name, _RULES, (ModelRow(_RULES, True, True, None, "fixed rules, no AI"),))
    provider = configured_provider(config, env, name)
    rules = login_rules(config)
    credentials = find_credentials(provider, env=env, home=home, rules=rules)
    renewal = find_renewal(credentials, LoginContext(provider, env, home, rules))
    try:
        offered = await list_models(provider, credentials, renewal=renewal)
    except ModelError as error:
        hint = None if error.unreachable else "a provider need not list its models; -m takes any name that it knows"
        raise UserError(f"cannot list the models of `{name}`: {error}", hint=hint) from error
    configured = chosen_model(config, provider)
    catalog = read_own_catalog(config)
    rows: list[ModelRow] = []
    for model in offered:
        facts = facts_for(model.id, overrides=config.models, catalog=catalog)
        window = model.context_window or (facts.context_window if facts.known else None)
        is_configured = model.id in (configured, f"{configured}:latest")
        rows.append(ModelRow(model.id, is_configured, facts.known, window, model.description))
    return OfferedModels(name, configured, tuple(rows))

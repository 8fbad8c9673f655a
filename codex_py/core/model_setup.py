"""Which model a session asks, with which settings, and how it is reached: provider, login, id of the installation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py import __version__
from codex_py.auth.find_credentials import LoginRules, find_credentials
from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.instructions import base_instructions
from codex_py.core.turn_context import ModelSettings
from codex_py.errors import ConfigError, LoginNeeded
from codex_py.model.catalog import ModelFacts, facts_for, read_catalog
from codex_py.model.client import ModelClient
from codex_py.model.credentials import Credentials
from codex_py.model.model_list import LocalChoice, choose_local_model
from codex_py.model.provider_client import ProviderClient
from codex_py.model.providers import HOSTED, Provider, resolve_provider
from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import is_uuid
from codex_py.text.files import os_reason

_FILE: Final = "installation_id"


def installation_id(home: Path) -> str:
    """The id kept in `installation_id` of CODEX_HOME; empty where none is kept."""
    try:
        # O_NONBLOCK: a named pipe in its place must not stop the program.
        descriptor = os.open(home / _FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        text = os.read(descriptor, 64).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return text if is_uuid(text) else ""


def make_installation_id(home: Path) -> None:
    """Make an id at the first use. A directory that cannot be written gets none, and what is there is left alone."""
    if os.path.lexists(home / _FILE):
        return
    made = os.urandom(16).hex()
    # The version and variant digits of a random UUID.
    made = f"{made[:8]}-{made[8:12]}-4{made[13:16]}-a{made[17:20]}-{made[20:]}"
    with suppress(OSError):
        make_private_dir(home)
        descriptor = open_private(home / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, made.encode())
        finally:
            os.close(descriptor)


_DEFAULT_MODEL: Final = "gpt-5.5"
_DEFAULT_LOCAL_MODELS: Final = {"ollama": "gpt-oss:20b", "lmstudio": "openai/gpt-oss-20b"}
_INSTRUCTIONS_MOST_BYTES: Final = 256 * 1024


def choose_model(config: Config, provider: Provider) -> str:
    """The model's name: the user's choice, else the provider's default. Raises `ConfigError` where there is none."""
    if config.model is not None and not config.model.strip():
        raise ConfigError("the model has no name", hint="give `-m` or `model` a name, or omit it to use the default")
    if model := chosen_model(config, provider):
        return model
    raise ConfigError(
        f"no model is chosen for the provider `{provider.id}`",
        hint=f"name one with `-m`; `codex-py models --provider {provider.id}` lists what it offers",
    )


def chosen_model(config: Config, provider: Provider) -> str:
    """The model that is asked now; empty where the user still has to choose one."""
    return "offline-rules" if provider.id == "offline" else config.model or default_model(provider)


def default_model(provider: Provider) -> str:
    """The model of a provider when the user has chosen none, empty for one that has no default."""
    hosted = HOSTED.get(provider.id)
    return hosted.model if hosted else _DEFAULT_LOCAL_MODELS.get(provider.id, _DEFAULT_MODEL)


def model_settings(config: Config, model: str, facts: ModelFacts, *, provider: Provider) -> ModelSettings:
    """How a model of a provider is asked. Raises `ConfigError` for an unreadable file."""
    window = config.model_context_window or facts.context_window
    return ModelSettings(
        model=model,
        # Models on this machine read slowly.
        instructions=_instructions(
            config.model_instructions_file,
            short=provider.local and provider.id != "offline",
            has_edit_tools=has_edit_tools(config, model, provider.id),
        ),
        effort=config.model_reasoning_effort or _default_effort(config, model, facts, provider),
        summary=_summary(config, facts),
        verbosity=(config.model_verbosity or facts.verbosity) if facts.takes_verbosity else config.model_verbosity,
        service_tier=config.service_tier,
        parallel_tool_calls=facts.parallel,
        context_window=window,
        output_tokens=config.tool_output_token_limit or facts.output_tokens,
        show_raw_reasoning=config.show_raw_agent_reasoning,
        auto_compact_tokens=config.model_auto_compact_token_limit or facts.auto_compact_tokens,
        auto_compact_scope=config.model_auto_compact_token_limit_scope,
        max_output_tokens=facts.max_output_tokens,
        pictures=facts.images,
        provider=provider.id,
        assumes_window=not (facts.known or config.model_context_window),
    )


def has_edit_tools(config: Config, model: str, provider_id: str) -> bool:
    """Whether a model changes files by plain edits, not by patches: as its own table says, or that of the provider."""
    own, provider = config.models.get(model), config.model_providers.get(provider_id)
    return ((own and own.edit_tool) or (provider and provider.edit_tool)) == "edit"


def _default_effort(config: Config, model: str, facts: ModelFacts, provider: Provider) -> str | None:
    # The table knows models by their servers at the Responses API; others refuse what they do not know.
    own = config.models.get(model)
    return facts.effort if provider.wire_api == "responses" or (own and own.reasoning_effort) else None


def _summary(config: Config, facts: ModelFacts) -> str | None:
    if config.model_supports_reasoning_summaries is False:
        return None
    # Whoever says that a model can sum up its thinking wants to read it.
    fallback = "auto" if config.model_supports_reasoning_summaries else None
    return config.model_reasoning_summary or facts.summary or fallback


def compact_prompt(config: Config) -> str | None:
    """The user's own request for a summary of the history. Raises `ConfigError` for an unreadable file."""
    file = config.experimental_compact_prompt_file
    if config.compact_prompt and config.compact_prompt.strip():
        return config.compact_prompt.strip()
    return None if file is None else _text_in(file, "experimental_compact_prompt_file")


def _instructions(file: Path | None, *, short: bool, has_edit_tools: bool) -> str:
    if file is not None:
        return _text_in(file, "model_instructions_file")
    return base_instructions(short=short, has_edit_tools=has_edit_tools)


def _text_in(file: Path, key: str) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read `{file}`: {os_reason(error)}", hint=f"correct `{key}`") from error
    if len(content) > _INSTRUCTIONS_MOST_BYTES:
        raise ConfigError(f"`{file}` is over 256 KiB", hint=f"correct `{key}`")
    text = content.decode(errors="replace").strip()
    if not text:
        raise ConfigError(f"`{file}` is empty", hint=f"correct `{key}`")
    return text


def configured_provider(config: Config, env: Mapping[str, str], provider_id: str = "") -> Provider:
    """A provider by its id, or that of the configuration. Raises `ConfigError` for one that cannot be used."""
    named = provider_id or config.model_provider
    return resolve_provider(named, configured=config.model_providers, env=env, openai_base_url=config.openai_base_url)


def login_rules(config: Config) -> LoginRules:
    """The login settings of the configuration."""
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
    provider = configured_provider(config, env)
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
        from codex_py.auth.renewal import LoginContext, find_renewal  # a key needs no renewal

        renewal = find_renewal(credentials, LoginContext(provider, env, home, rules))
    return ProviderClient(
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
    flagged = [name for name in ("model", "model_provider") if loaded.origins[name].layer_type == "flags"]
    return await choose_local_model(
        provider,
        requested=choose_model(loaded.config, provider),
        default=default_model(provider),
        # With `--oss` alone, the model in a file was meant for another provider.
        insist=loaded.config.model is not None and flagged != ["model_provider"],
    )


def read_own_catalog(config: Config) -> Mapping[str, ModelFacts]:
    """Read the user's catalogue file; empty without one. Raises `UserError` if the file is not a catalogue."""
    if config.model_catalog_json is None:
        return {}
    return read_catalog(config.model_catalog_json)


def known_facts(config: Config, model: str, local: LocalChoice | None) -> ModelFacts:
    """What is known about a model: the user's entries, their catalogue file, the built-in table, the server itself."""
    catalog = read_own_catalog(config)
    facts = facts_for(model, overrides=config.models, catalog=catalog)
    own = config.models.get(model)
    is_users = model in catalog or (own is not None and own.context_window is not None)
    if not is_users and local is not None and local.context_window is not None:
        # A model may have a larger window than its server was started with.
        return facts.replace(context_window=local.context_window, known=True)
    return facts

"""Which model is asked and how: the user's settings, else what is known about the model."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from codex_py.config.schema import Config
from codex_py.context.instructions import base_instructions
from codex_py.core.turn_context import ModelSettings
from codex_py.errors import ConfigError
from codex_py.model.catalog import ModelFacts
from codex_py.model.providers import Provider
from codex_py.text.reasons import os_reason

_DEFAULT_MODEL: Final = "gpt-5.5"
_DEFAULT_LOCAL_MODELS: Final = {"ollama": "gpt-oss:20b", "lmstudio": "openai/gpt-oss-20b"}
_INSTRUCTIONS_MOST_BYTES: Final = 256 * 1024


def choose_model(config: Config, provider: Provider) -> str:
    """The model's name: the user's choice, else the provider's default. Raises `ConfigError` for an empty name."""
    if provider.id == "offline":
        return "offline-rules"
    if config.model is not None and not config.model.strip():
        raise ConfigError("the model has no name", hint="give `-m` or `model` a name, or omit it to use the default")
    return config.model or default_model(provider)


def default_model(provider: Provider) -> str:
    """The model of a provider when the user has chosen none."""
    return _DEFAULT_LOCAL_MODELS.get(provider.id, _DEFAULT_MODEL)


def model_settings(config: Config, model: str, facts: ModelFacts, *, local: bool) -> ModelSettings:
    """`local` models get the short base instructions: they read slowly. Raises `ConfigError` for an unreadable file."""
    window = config.model_context_window or facts.context_window
    return ModelSettings(
        model=model,
        instructions=_instructions(config.model_instructions_file, short=local),
        effort=config.model_reasoning_effort or facts.effort,
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
    )


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


def _instructions(file: Path | None, *, short: bool) -> str:
    return base_instructions(short=short) if file is None else _text_in(file, "model_instructions_file")


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

"""The environment that the commands of a session run with."""

from __future__ import annotations

from collections.abc import Mapping

from codex_py import __version__
from codex_py.config.schema import Config
from codex_py.model.providers import Provider
from codex_py.process.env import EnvironmentRules, tool_environment


def key_names(config: Config, provider: Provider | None = None) -> frozenset[str]:
    """The variables that hold a provider's key: no command gets them."""
    configured = [record.env_key for record in config.model_providers.values()]
    own = provider.api_key_env if provider else None
    return frozenset(filter(None, ["OPENAI_API_KEY", "CODEX_API_KEY", own, *configured]))


def command_env(
    config: Config, env: Mapping[str, str], keys: frozenset[str], extra: Mapping[str, str]
) -> dict[str, str]:
    """What of the user's environment commands get by the settings, and `extra` with it."""
    rules = config.shell_environment_policy
    return tool_environment(
        env,
        EnvironmentRules(rules.inherit, rules.ignore_default_excludes, rules.exclude, rules.set, rules.include_only),
        secrets=keys,
        extra={**extra, "CODEX_VERSION": __version__},
    )

"""The environment that the commands of a session run with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from codex_py import __version__
from codex_py.config.schema import Config
from codex_py.model.providers import Provider
from codex_py.process.env import EnvironmentRules, tool_environment, withheld_by_value
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize_line

_MAX_NAMES: Final = 8


def key_names(config: Config, provider: Provider | None = None) -> frozenset[str]:
    """The variables that hold a provider's key: no command gets them."""
    configured = [record.env_key for record in config.model_providers.values()]
    own = provider.api_key_env if provider else None
    return frozenset(filter(None, ["OPENAI_API_KEY", "CODEX_API_KEY", own, *configured]))


def command_env(
    config: Config, env: Mapping[str, str], keys: frozenset[str], extra: Mapping[str, str]
) -> dict[str, str]:
    """What of the user's environment commands get by the settings, and `extra` with it."""
    return tool_environment(env, environment_rules(config), secrets=keys, extra={**extra, "CODEX_VERSION": __version__})


def environment_rules(config: Config) -> EnvironmentRules:
    """`[shell_environment_policy]` for the package that applies it."""
    rules = config.shell_environment_policy
    return EnvironmentRules(
        inherit=rules.inherit,
        ignore_default_excludes=rules.ignore_default_excludes,
        allow=rules.allow,
        exclude=rules.exclude,
        set=rules.set,
        include_only=rules.include_only,
    )


class WithheldCredentials(Value):
    """Variables kept from commands because of their values: these values, and one line for the user, "" for none."""

    values: tuple[str, ...] = ()
    notice: str = ""


def withheld_credentials(config: Config, env: Mapping[str, str], keys: frozenset[str]) -> WithheldCredentials:
    """Which variables are withheld because their values hold credentials; the notice names them and no value."""
    names = [name for name in withheld_by_value(env, environment_rules(config)) if name not in keys]
    if not names:
        return WithheldCredentials()
    shown = ", ".join(f"`{sanitize_line(name)}`" for name in names[:_MAX_NAMES])
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    verb = "holds a credential and is" if len(names) == 1 else "hold credentials and are"
    notice = (
        f"{shown}{more} {verb} not passed to commands; to pass one on:"
        f' `shell_environment_policy.allow = ["{sanitize_line(names[0])}"]`'
    )
    return WithheldCredentials(tuple(env[name] for name in names), notice)

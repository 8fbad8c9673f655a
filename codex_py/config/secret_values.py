"""Collects the secrets in a configuration, so that they can be redacted from everything that is shown or stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from codex_py.config.schema import Config
from codex_py.config.value_types import AnyTable, MapOf, RecordSection, Shape, Url, ValueType, settings_of
from codex_py.text.credentials import is_secret, setting_secrets, url_secrets, word_secrets

# Tables that name a variable for each header, and keys that name one.
_NAMED_BY: Final = frozenset({"env_http_headers", "bearer_token_env_var", "oauth_client_secret_env_var", "env_key"})


def secret_values(config: Config, env: Mapping[str, str]) -> tuple[str, ...]:
    """The secret values of headers, variables, parameters, addresses and arguments, each once.

    Where a setting names a variable, its value in `env` counts. Words, numbers and paths are left out unless their key
    says that they are secret: redacting them would spoil ordinary text.
    """
    found = _secrets(RecordSection(Config), config, "", env)
    return tuple(dict.fromkeys(value for value in found if value))


def _secrets(value_type: ValueType, value: Any, name: str, env: Mapping[str, str]) -> Iterator[str]:
    if not value:
        return
    if name in _NAMED_BY:
        names = cast("Mapping[str, str]", value).values() if isinstance(value, Mapping) else (cast("str", value),)
        yield from (env.get(variable, "") for variable in names)
        return
    match value_type:
        case RecordSection():
            for key, setting in settings_of(value_type.record).items():
                yield from _secrets(setting.value_type, getattr(value, key), key, env)
        case MapOf() if value_type.secret or value_type.secret_by_name:
            yield from setting_secrets(value)
        case MapOf():
            for inner in value.values():
                yield from _secrets(value_type.value_type, inner, "", env)
        case Shape():
            for key, inner in value.items():
                yield from _secrets(value_type.value_types[key], inner, key, env)
        case AnyTable():
            yield from _table_secrets(value, name)
        case Url():
            yield from url_secrets(value)
        case _:
            if value_type.secret and isinstance(value, str):
                yield value
            elif name == "args":
                yield from word_secrets(value)


def _table_secrets(value: Any, name: str) -> Iterator[str]:
    """The secrets of a free table, recognised by the names of its keys."""
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _table_secrets(inner, key)
    elif isinstance(value, list | tuple):
        for inner in cast("list[Any]", value):
            yield from _table_secrets(inner, name)
    elif isinstance(value, str) and is_secret(name, value):
        yield value

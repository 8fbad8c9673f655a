"""The effective value of every key for display: secrets masked, JSON types only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from codex_py.config.keys import KeyPath, dotted
from codex_py.config.layers import Layer
from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.config.value_types import AnyTable, ConfigRecord, MapOf, RecordSection, Shape, Url, ValueType, settings_of
from codex_py.protocol.policy import GranularApproval, approval_payload
from codex_py.text.credentials import has_credential, is_secret, is_secret_name, masked_words

MASK: Final = "***"
_COMMAND_KEYS: Final = frozenset({"args", "notify", "command"})
_SECRET_TABLES: Final = frozenset({"headers", "http_headers", "env"})


class EffectiveValue(NamedTuple):
    """One key: its value in JSON's types, and the layer it came from."""

    key: str
    value: Any
    layer: Layer


def effective_values(loaded: LoadedConfig) -> list[EffectiveValue]:
    """Every key in the order of the schema; of tables with free names, the keys that are set."""
    defaults = Layer("defaults")
    schema = RecordSection(Config)
    return [
        EffectiveValue(key, value, loaded.origins.get(key, defaults))
        for path, value in _shown(schema, loaded.config, ())
        if (key := dotted(path)) in loaded.origins or value == {}
    ]


def _shown(value_type: ValueType, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    match value_type:
        case RecordSection():
            for name, setting in settings_of(value_type.record).items():
                yield from _shown(setting.value_type, getattr(value, name), (*path, name))
        case MapOf() | AnyTable() if not value:
            # An empty table is shown once, as a key of its own, and not inside each provider.
            if len(path) <= 2:
                yield path, {}
        case MapOf():
            yield from _entries(value_type, value, path)
        case Shape():
            for name, inner in cast("Mapping[str, Any]", value or {}).items():
                yield from _shown(value_type.value_types[name], inner, (*path, name))
        case AnyTable():
            for name, inner in value.items():
                yield from _table_leaves(inner, (*path, name))
        case _:
            yield path, _masked(value_type, value, path)


def _entries(value_type: MapOf, entries: Mapping[str, Any], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for name, inner in entries.items():
        if value_type.secret_by_name and is_secret(name, inner):
            yield (*path, name), MASK
        else:
            yield from _shown(value_type.value_type, inner, (*path, name))


def _table_leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """The values of a table with free keys; secrets in it are recognised by their names only."""
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _table_leaves(inner, (*path, name))
    else:
        yield path, _masked_by_name(value, path)


def _masked_by_name(value: Any, path: KeyPath) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {name: _masked_by_name(inner, (*path, name)) for name, inner in table.items()}
    if isinstance(value, list):
        return [_masked_by_name(inner, path) for inner in cast("list[Any]", value)]
    hidden = is_secret_name(str(path[-1])) or not _SECRET_TABLES.isdisjoint(path)
    return MASK if isinstance(value, str) and (hidden or has_credential(value)) else _plain(value)


def _masked(value_type: ValueType, value: Any, path: KeyPath) -> Any:
    if value_type.secret and value:
        return MASK
    if isinstance(value_type, Url) and value:
        return _without_credentials(value)
    if isinstance(value, tuple) and path[-1] in _COMMAND_KEYS:
        return masked_words(cast("tuple[str, ...]", value))
    return MASK if isinstance(value, str) and has_credential(value) else _plain(value)


def _without_credentials(url: str) -> str:
    """An address without the password and the query, which may hold a key."""
    scheme, _, rest = url.partition("://")
    address, query, _ = rest.partition("?")
    host, slash, path = address.partition("/")
    user, at, host = host.rpartition("@")
    return f"{scheme}://{MASK + at if user else at}{host}{slash}{path}" + (f"?{MASK}" if query else "")


def _plain(value: Any) -> Any:
    """A value in the types of JSON."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case GranularApproval():
            return approval_payload(value)
        case ConfigRecord():
            return {name: _plain(getattr(value, name)) for name in value.__match_args__}
        case Mapping():
            return {name: _plain(inner) for name, inner in cast("Mapping[str, Any]", value).items()}
        case list() | tuple():
            return [_plain(inner) for inner in cast("list[Any]", value)]
        case _:
            return str(value)

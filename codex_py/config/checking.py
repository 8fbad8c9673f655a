"""Checking a tree that was read, with errors and warnings that say where the key stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.config.keys import KeyPath, dotted, toml_value
from codex_py.config.kinds import Reading, UnknownKey, ValueType, WrongValue
from codex_py.config.layers import LayerSource
from codex_py.config.record import RecordSection, settings_of
from codex_py.config.schema import Config
from codex_py.config.sections import ProviderConfig
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_list
from codex_py.text.credentials import has_credential
from codex_py.text.masked import masked_words
from codex_py.text.nearest import nearest

_MAX_VALUE_LENGTH: Final = 80
_API_KEYS: Final = ("api_key", "apikey", "openai_api_key")
# Settings that hold secrets of other services; command lines, which may; and tables of both.
_PRIVATE: Final = frozenset(("args", "env", "http_headers", "query_params", "set"))
_COMMANDS: Final = frozenset(("command", "notify"))
_SIGNS_OF_ARGUMENTS: Final = frozenset(" \t=@")
_OF_SERVICES: Final = frozenset(("hooks", "mcp_servers", "model_providers", "plugins"))


def check_tree(
    value_type: ValueType, tree: Mapping[str, Any], *, source: LayerSource, directory: Path, home: str
) -> tuple[dict[str, Any], list[UnknownKey]]:
    """The tree with final values, and the keys nobody knows; raise `UserError` for the first wrong value.

    Relative paths start at `folder`; `~` is `home`.
    """
    reading = Reading(directory, home, [])
    try:
        return value_type.check(tree, (), reading), reading.unknown
    except WrongValue as error:
        raise wrong_value(error, source) from error


def wrong_value(error: WrongValue, source: LayerSource) -> ConfigError:
    """The line that names the key, what was found, where, and what is allowed."""
    found = _shortened(toml_value(error.value))
    where = source.where(error.path)
    allowed = error.allowed
    if error.secret or _may_hold_secret(error):
        # The words of a flag, and an example made of the value, hold it too.
        found, where = "…", where if source.layer.path else "in `-c`"
        allowed = allowed.partition(", as in ")[0]
    return ConfigError(f"cannot use `{dotted(error.path)} = {found}` {where}: {allowed}", hint=_hint(error))


def _hint(error: WrongValue) -> str | None:
    """The next step after the mistakes that people bring along from other programs."""
    value: object = error.value
    words = as_list(value)
    match error.path, value:
        case (*_, "wire_api"), "chat":
            return "chat completions are not supported; most servers that had them now offer `/responses` too"
        case (*_, "command"), _ if words:
            program, *arguments = masked_words([str(word) for word in words])
            return f"write `command = {toml_value(program)}` and `args = {toml_value(arguments)}`"
        case ("sandbox",), str():
            return "the mode is set by `sandbox_mode`"
        case ("projects", directory), str():
            return f"write `[{dotted(('projects', directory))}]` and below it `trust_level = {toml_value(value)}`"
        case ("skills", "config"), dict():
            return "write the header as `[[skills.config]]`"
        case ("mcp_servers",), list():
            return "write the header as `[mcp_servers.NAME]`"
        case ("web_search",), bool(on):
            return f'write `web_search = "{"live" if on else "disabled"}"`'
        case _:
            return None


def unknown_key(unknown: UnknownKey, source: LayerSource, *, strict: bool) -> str:
    """The line about a key nobody knows, with the nearest one that somebody does.

    Raises `UserError` with it when unknown keys are errors.
    """
    name = str(unknown.path[-1])
    near = nearest(name, unknown.known)
    guess = f"did you mean `{dotted((*unknown.path[:-1], near))}`?" if near else _elsewhere(unknown.path)
    found = f"unknown key `{dotted(unknown.path)}` {source.where(unknown.path)}"
    if strict:
        raise ConfigError(
            f"{found}: {guess}" if guess else found, hint=None if guess else "`codex-py config` lists them"
        )
    return f"{found} is ignored; {guess}" if guess else f"{found} is ignored"


def _elsewhere(path: KeyPath) -> str:
    """Where a key of this very name belongs, for one that is in the wrong table."""
    name = path[-1]
    if len(path) > 1 and name in settings_of(Config):
        return f"`{name}` is a key of the top level: move it above the first `[table]`"
    tables = {
        key: setting.value_type.record
        for key, setting in settings_of(Config).items()
        if isinstance(setting.value_type, RecordSection)
    }
    found = [key for key, record in tables.items() if name in settings_of(record)]
    from codex_py.config.tui import KEYS as OF_TUI  # the seam: only for a key in the wrong table

    found += ["tui"] if name in OF_TUI else []
    if len(found) == 1 and path[:-1] != (found[0],):
        return f"`{name}` belongs in the table `[{found[0]}]`"
    if name in settings_of(ProviderConfig):
        return f"`{name}` belongs in a table `[model_providers.NAME]`"
    if name == "trust_level":
        return 'it belongs in a table `[projects."DIRECTORY"]`'
    if str(name).lower() in _API_KEYS:
        return "a key is kept with `codex-py login --with-api-key`, or in the variable OPENAI_API_KEY"
    return ""


def _may_hold_secret(error: WrongValue) -> bool:
    """Whether a wrong value may have a secret in it: written where a table belongs, it has no name to tell by."""
    value, names = error.value, {str(key) for key in error.path}
    if not isinstance(value, str | list | dict) or not value:
        return False
    if not names.isdisjoint(_PRIVATE):
        return True
    if not isinstance(value, str):
        return "URL" in error.allowed or not names.isdisjoint(_OF_SERVICES)
    if not names.isdisjoint(_COMMANDS):
        return has_credential(value) or not _SIGNS_OF_ARGUMENTS.isdisjoint(value)
    if error.allowed.startswith("it must be a table"):
        return not names.isdisjoint(_OF_SERVICES)
    return has_credential(value) or ("URL" in error.allowed and not {"@", "?"}.isdisjoint(value))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_VALUE_LENGTH else text[:_MAX_VALUE_LENGTH] + "…"

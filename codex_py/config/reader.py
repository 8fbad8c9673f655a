"""Reads and checks the layers, and words errors and warnings with the file and line of the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from codex_py.config.files import read_text, weak_permissions, without_commands
from codex_py.config.keys import KeyPath, dotted, toml_value
from codex_py.config.layers import Checked, Layer, LayerSource, LayerType, holds, parse_toml
from codex_py.config.model_sections import ProviderConfig
from codex_py.config.schema import BUILT_IN_PROVIDERS, FOREIGN_KEYS, Config
from codex_py.config.sections import SandboxWorkspaceWrite
from codex_py.config.tui import KEYS as TUI_KEYS
from codex_py.config.value_types import (
    Reading,
    RecordSection,
    UnknownKey,
    ValueType,
    WrongValue,
    settings_of,
    wrong_word,
)
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_list
from codex_py.text.credentials import has_credential, masked_words
from codex_py.text.nearest import nearest

_MAX_VALUE_LENGTH: Final = 80
_API_KEYS: Final = ("api_key", "apikey", "openai_api_key")
# Settings that hold secrets of other services; command lines, which may hold some; and tables with both.
_PRIVATE: Final = frozenset(("args", "env", "http_headers", "query_params", "set"))
_COMMANDS: Final = frozenset(("command", "notify"))
_SIGNS_OF_ARGUMENTS: Final = frozenset(" \t=@")
# What may be said of a built-in provider without an address of its own in this table.
_OF_BUILT_IN: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "openai": frozenset(("compaction", "edit_tool")),
        **dict.fromkeys(("ollama", "lmstudio"), frozenset(("edit_tool",))),
    }
)
_OF_SERVICES: Final = frozenset(("hooks", "mcp_servers", "model_providers", "plugins"))


def check_tree(
    value_type: ValueType, tree: Mapping[str, Any], *, source: LayerSource, directory: Path, home: str
) -> tuple[dict[str, Any], list[UnknownKey]]:
    """The tree with final values, and the unknown keys; raise `UserError` for the first wrong value.

    Relative paths start at `directory`; `~` is `home`.
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
        found, where = "…", "in `-c`" if source.flag.startswith("`-c ") else where
        allowed = allowed.partition(", as in ")[0]
    return ConfigError(f"cannot use `{dotted(error.path)} = {found}` {where}: {allowed}", hint=_hint(error))


def _hint(error: WrongValue) -> str | None:
    """A hint for mistakes that come from the formats of other programs."""
    value: object = error.value
    words = as_list(value)
    match error.path, value:
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


# Settings that the version before this one had, each with the new way.
_REMOVED: Final[Mapping[str, str]] = MappingProxyType(
    {"skills.follow_links": "links in your own skill directories are always followed"}
)


def unknown_key(unknown: UnknownKey, source: LayerSource, *, strict: bool) -> str:
    """The warning about an unknown key, with the nearest known one. Raises `UserError` instead with `strict`."""
    if remedy := _REMOVED.get(dotted(unknown.path)):
        found = f"the setting `{dotted(unknown.path)}` {source.where(unknown.path)} is gone: {remedy}"
        if strict:
            raise ConfigError(found)
        return found
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
    """Where a known key belongs that is in the wrong table; empty for others."""
    name = path[-1]
    if len(path) > 1 and name in settings_of(Config):
        return f"`{name}` is a key of the top level: move it above the first `[table]`"
    tables = {
        key: setting.value_type.record
        for key, setting in settings_of(Config).items()
        if isinstance(setting.value_type, RecordSection)
    }
    found = [key for key, record in tables.items() if name in settings_of(record)]
    found += ["tui"] if name in TUI_KEYS else []
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
    """Whether a wrong value may contain a secret; a value in place of a table has no key that would tell."""
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


SCHEMA: Final = RecordSection(Config)
# A restriction with a misspelt name must not be dropped with a warning.
_RESTRICTIONS: Final = ("sandbox", "sandbox_workspace_write")
_PROFILES: Final = ("profile", "profiles")
_OTHER_ADDRESS: Final = {
    "openai": "; `openai_base_url` sends `openai` to another address",
    "ollama": "; the variable `CODEX_OSS_BASE_URL` sends `--oss` to another address",
    "lmstudio": "; the variable `CODEX_OSS_BASE_URL` sends `--oss` to another address",
}


class LayerReader:
    """Reads and checks layers. `user_home` is what `~` means; with `strict` an unknown key is an error.

    `in_sandbox` says that this program itself runs in a sandbox, which hides the user's settings.
    """

    def __init__(self, user_home: str, *, strict: bool, in_sandbox: bool = False) -> None:
        self._user_home = user_home
        self._strict = strict
        self._in_sandbox = in_sandbox
        self._warnings: list[str] = []
        self._weak: dict[str, list[str]] = {}
        self._unknown: list[tuple[UnknownKey, LayerSource]] = []

    @property
    def warnings(self) -> list[str]:
        """All warnings so far, one line each."""
        weak = [
            f"{reason}"
            + (f"; until then these keys are ignored: {', '.join(f'`{key}`' for key in keys)}" if keys else "")
            for reason, keys in self._weak.items()
        ]
        return [*self._warnings, *weak]

    def warn(self, message: str) -> None:
        """Add a warning."""
        self._warnings.append(message)

    def raise_unknown(self, table: KeyPath) -> None:
        """Raise `ConfigError` for the first unknown key of a table that looks like a known one, if there is any."""
        for unknown, source in self._unknown:
            if unknown.path[:-1] == table and nearest(str(unknown.path[-1]), unknown.known):
                unknown_key(unknown, source, strict=True)

    def read_file(self, layer_type: LayerType, path: Path) -> tuple[LayerSource, dict[str, Any]] | None:
        """Read a file of the user or of the machine, without checking it.

        Keys that run programs are left out when other users can write the file.
        """
        try:
            text = read_text(path)
        except ConfigError as error:
            if not (self._in_sandbox and isinstance(error.__cause__, PermissionError)):
                raise
            self.warn(f"`{path}` is left out: commands in the sandbox cannot read it")
            return None
        if text is None:
            return None
        tree = parse_toml(text, path)
        weak = weak_permissions(path)
        if weak is not None:
            tree, dropped = without_commands(tree)
            self._weak.setdefault(weak, []).extend(dropped)
        return LayerSource(Layer(layer_type, path), text), tree

    def check(self, source: LayerSource, tree: Mapping[str, Any], directory: Path) -> Checked:
        """Check a tree; relative paths in it start at `directory`. Raises `UserError` for a wrong value."""
        checked, unknown = check_tree(SCHEMA, tree, source=source, directory=directory, home=self._user_home)
        for extra_key in unknown:
            self._note_unknown(extra_key, source)
        for name, table in checked.get("model_providers", {}).items():
            if name in BUILT_IN_PROVIDERS and not table.keys() <= _OF_BUILT_IN.get(name, frozenset()):
                raise ConfigError(
                    f"cannot redefine the built-in provider `{name}` {source.where(('model_providers', name))}",
                    hint=f"choose another name{_OTHER_ADDRESS.get(name, '')}",
                )
        return Checked(source, checked)

    def _note_unknown(self, unknown: UnknownKey, source: LayerSource) -> None:
        top_level = len(unknown.path) == 1
        if top_level and unknown.path[0] in FOREIGN_KEYS:
            return
        if top_level and unknown.path[0] in _PROFILES and not self._strict:
            self.warn(
                f"`{unknown.path[0]}` {source.where(unknown.path)} is ignored: a profile is a file of its own, "
                "`$CODEX_HOME/NAME.config.toml`, chosen with `-p NAME`"
            )
            return
        self._unknown.append((unknown, source))
        self.warn(unknown_key(unknown, source, strict=self._strict or unknown.path[0] in _RESTRICTIONS))


_SEARCHES: Final = {"web_search_request": "live", "web_search_cached": "cached"}
PERMISSION_MODES: Final = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}


def translated(layers: Sequence[Checked]) -> list[Checked]:
    """The layers, lowest first, with `default_permissions` as a sandbox mode and old names of features as settings.

    Raises `UserError` for a set of permissions that is in effect and not supported here.
    """
    searched = _search(layers)
    modes = [holds(checked.tree, ("sandbox_mode",)) for checked in layers]
    done: list[Checked] = []
    for position, layer in enumerate(layers):
        added: dict[str, Any] = {}
        if searched is not None and searched[0] == position:
            added["web_search"] = searched[1]
        if "default_permissions" in layer.tree:
            # A set of permissions that a higher layer overrides need not be supported.
            added |= _permissions(layer, decides=not any(modes[position + 1 :]))
        done.append(Checked(layer.source, {**layer.tree, **added}) if added else layer)
    return done


def _search(layers: Sequence[Checked]) -> tuple[int, str] | None:
    """The layer that enables web search by an older name, and the value. Only used if no layer sets `web_search`."""
    if any(holds(layer.tree, ("web_search",)) for layer in layers):
        return None
    for name, word in _SEARCHES.items():
        stated = [index for index, layer in enumerate(layers) if holds(layer.tree, ("features", name))]
        if stated and layers[stated[-1]].tree["features"][name]:
            return stated[-1], word
    return None


def _permissions(layer: Checked, *, decides: bool) -> dict[str, Any]:
    name = layer.tree["default_permissions"]
    if name in PERMISSION_MODES:
        # A named set is complete, so `[sandbox_workspace_write]` adds nothing to it.
        own = {key: setting.default for key, setting in settings_of(SandboxWorkspaceWrite).items()}
        return {"sandbox_mode": PERMISSION_MODES[name], "sandbox_workspace_write": own}
    if not decides:
        return {}
    where = layer.source.where(("default_permissions",))
    raise ConfigError(
        f"cannot use `default_permissions = {toml_value(name)}` {where}: {wrong_word(name, tuple(PERMISSION_MODES))}",
        hint="for a profile of your own use `sandbox_mode`, `sandbox_workspace_write` and `sandbox.deny_read`",
    )

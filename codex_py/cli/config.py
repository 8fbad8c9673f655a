"""`codex-py config`: shows every setting and the layer it comes from; `get` and `set` are for one setting."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from codex_py.cli.console import local_request, print_json, print_note, print_warnings
from codex_py.cli.options import working_directory
from codex_py.cli.typer_command import (
    IgnoreUserConfig,
    Json,
    Overrides,
    Profile,
    StrictConfig,
    WorkingDirectory,
    command_first,
    run_command,
)
from codex_py.config.edit import set_value
from codex_py.config.effective import EffectiveValue, effective_values
from codex_py.config.keys import dotted, parse_key, toml_value
from codex_py.config.layers import Layer, LayerSource, nested
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config, parse_value, profile_file
from codex_py.config.reader import SCHEMA, check_tree, unknown_key
from codex_py.errors import ConfigError, UsageError
from codex_py.hooks.sources import hook_faults
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

_WIDEST_VALUE: Final = 48
_THIS_COMMAND: Final = "`config set`"


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py config` with these arguments; give back the exit status."""
    functions = {"get": get_value, "set": set_in_file}
    arguments = command_first(arguments, functions)
    word = next(iter(arguments), "-")
    if word in functions:
        return run_command(functions[word], arguments[1:], name=f"config {word}")
    if not word.startswith("-"):
        hint = did_you_mean(word, functions) or "`codex-py config` lists every setting"
        raise UsageError(f"no command `{word}` in `codex-py config`", hint=hint)
    return run_command(config, arguments, name="config")


def config(
    overrides: Overrides = None,
    profile: Profile = None,
    cd: WorkingDirectory = None,
    strict_config: StrictConfig = False,
    ignore_user_config: IgnoreUserConfig = False,
    as_json: Json = False,
    everything: Annotated[
        bool, typer.Option("--all/--changed", help="Show all settings, or only those that differ from the defaults.")
    ] = True,
) -> int:
    """Show every setting in force and the file or flag it comes from.

    What differs from the defaults comes first. Keys and tokens are masked.

    `codex-py config get KEY` prints one setting, `codex-py config set KEY VALUE` changes one in
    $CODEX_HOME/config.toml and keeps its comments.
    """
    request = local_request(overrides, profile, cwd=working_directory(cd))
    loaded = _load(request.replace(strict=strict_config, ignore_user=ignore_user_config))
    show_config(loaded, as_json=as_json, everything=everything)
    return 0


def get_value(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The setting, for example `sandbox_mode`.")],
    overrides: Overrides = None,
    profile: Profile = None,
    cd: WorkingDirectory = None,
) -> int:
    """Print the value of a setting in force; of a table, a line for each of its keys. Secrets are masked."""
    loaded = _load(local_request(overrides, profile, cwd=working_directory(cd)))
    name = dotted(parse_key(key))
    values = effective_values(loaded)
    if found := next((entry for entry in values if entry.key == name), None):
        print(sanitize_line(found.value if isinstance(found.value, str) else _format_value(found.value)))
        return 0
    inner = [entry for entry in values if entry.key.startswith(f"{name}.")]
    if not inner:
        guess = did_you_mean(name, [entry.key for entry in values])
        raise UsageError(f"no setting `{name}`", hint=guess or "`codex-py config` lists every setting")
    for entry in inner:
        print(sanitize_line(f"{entry.key} = {_format_value(entry.value)}"))
    return 0


def set_in_file(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The setting, for example `sandbox_mode`.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value: TOML, or else text.")],
    profile: Annotated[
        str | None, typer.Option("-p", "--profile", metavar="NAME", help="Change $CODEX_HOME/NAME.config.toml instead.")
    ] = None,
) -> int:
    """Change one setting in $CODEX_HOME/config.toml; comments and layout are kept."""
    keys, parsed = parse_key(key), parse_value(value)
    request = local_request(profile=profile)
    home = request.home
    file = home / "config.toml" if profile is None else profile_file(home, profile)
    source = LayerSource(Layer("flags"), flag=_THIS_COMMAND)
    user_home = os.environ.get("HOME", "")
    _, unknown = check_tree(SCHEMA, nested(keys, parsed), source=source, directory=home, home=user_home)
    for unknown_name in unknown:
        unknown_key(unknown_name, source, strict=True)
    _check_with_the_rest(request, dotted(keys), parsed)
    set_value(file, keys, parsed)
    print_note(f"set `{dotted(keys)}` in `{file}`")
    return 0


def _check_with_the_rest(request: ConfigRequest, key: str, value: Any) -> None:
    """Raise `ConfigError` for a value that causes an error or a warning together with the other settings."""
    try:
        before = _warnings(load_config(request), request)
    except ConfigError:
        # The file is already broken, and this edit may repair it.
        return
    request = request.replace(flags={key: value}, flags_from=_THIS_COMMAND)
    for warning in _warnings(load_config(request), request):
        if warning not in before:
            # Hooks name no flag.
            found = warning.replace("in the command line", f"in {_THIS_COMMAND}")
            raise ConfigError(f"cannot set `{key}`: {found}")


def _load(request: ConfigRequest) -> LoadedConfig:
    loaded = load_config(request)
    print_warnings(*_warnings(loaded, request))
    return loaded


def _warnings(loaded: LoadedConfig, request: ConfigRequest) -> list[str]:
    return [*loaded.warnings, *hook_faults(loaded, request.home, request.cwd)]


def _format_value(value: Any) -> str:
    return "(not set)" if value is None else toml_value(value)


def show_config(loaded: LoadedConfig, *, as_json: bool, everything: bool = True) -> None:
    """Print the effective value of each key and its layer, secrets masked; without `everything` only set ones."""
    values = effective_values(loaded)
    chosen = [entry for entry in values if entry.layer.layer_type != "defaults"]
    left = [entry for entry in values if entry.layer.layer_type == "defaults"] if everything else []
    if as_json:
        print_json(_as_object(loaded, [*chosen, *left]))
        return
    rows = [*map(_row, chosen), *map(_short_row, left)]
    key_width = max((len(row[0]) for row in rows), default=0)
    value_width = min(max((len(row[1]) for row in rows), default=0), _WIDEST_VALUE)
    for position, (key, value, layer) in enumerate(rows):
        if position == len(chosen) and chosen:
            print()
        print(f"{key:<{key_width}}  {value:<{value_width}}  {layer}")


def _row(entry: EffectiveValue) -> tuple[str, str, str]:
    return sanitize_line(entry.key), sanitize_line(_format_value(entry.value)), sanitize_line(_layer_text(entry.layer))


def _short_row(entry: EffectiveValue) -> tuple[str, str, str]:
    """A row whose value is cut; `--json` has all of it."""
    key, value, layer = _row(entry)
    return key, value if len(value) <= _WIDEST_VALUE else f"{value[: _WIDEST_VALUE - 1]}…", layer


def _layer_text(layer: Layer) -> str:
    return layer.layer_type if layer.path is None else f"{layer.layer_type} {layer.path}"


def _as_object(loaded: LoadedConfig, values: Sequence[EffectiveValue]) -> dict[str, Any]:
    return {
        "layers": [_layer_object(layer) for layer in loaded.layers],
        "trust": loaded.trust,
        "project_root": None if loaded.project_root is None else str(loaded.project_root),
        "warnings": list(loaded.warnings),
        "settings": {entry.key: {"value": entry.value, **_layer_object(entry.layer)} for entry in values},
    }


def _layer_object(layer: Layer) -> dict[str, str | None]:
    return {"layer": layer.layer_type, "file": None if layer.path is None else str(layer.path)}

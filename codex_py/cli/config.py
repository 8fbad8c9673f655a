"""`codex-py config`: the effective value of every key and the layer it came from."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final, TextIO

import typer

from codex_py.cli import typer_options as options
from codex_py.cli.settings import working_directory
from codex_py.cli.typer_command import run_command
from codex_py.config.effective import EffectiveValue, effective_values
from codex_py.config.keys import toml_value
from codex_py.config.layers import Layer
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.paths import codex_home
from codex_py.text.sanitize import sanitize_line

_WIDEST_VALUE: Final = 48


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py config` with these arguments; give back the exit status."""
    return run_command(config, arguments, name="config")


def config(
    overrides: options.Overrides = None,
    profile: options.Profile = None,
    cd: options.WorkingDirectory = None,
    strict_config: options.StrictConfig = False,
    ignore_user_config: options.IgnoreUserConfig = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    everything: Annotated[
        bool, typer.Option("--all/--changed", help="Also the keys that nobody set, or only those somebody did.")
    ] = True,
) -> int:
    """Show every setting in force and the file or flag it comes from.

    What differs from the defaults comes first. Keys and tokens are masked.
    """
    cwd = working_directory(None if cd is None else str(cd))
    loaded = load_config(
        ConfigRequest(
            home=codex_home(os.environ),
            cwd=cwd,
            env=os.environ,
            overrides=tuple(overrides or ()),
            profile=profile,
            strict=strict_config,
            ignore_user=ignore_user_config,
        )
    )
    for warning in loaded.warnings:
        print(sanitize_line(f"warning: {warning}"), file=sys.stderr)
    show_config(loaded, sys.stdout, as_json=as_json, everything=everything)
    return 0


def show_config(loaded: LoadedConfig, out: TextIO, *, as_json: bool, everything: bool = True) -> None:
    """Print the effective value of each key and its layer, secrets masked; without `everything` only what was set."""
    values = effective_values(loaded)
    chosen = [one for one in values if one.layer.kind != "defaults"]
    left = [one for one in values if one.layer.kind == "defaults"] if everything else []
    if as_json:
        out.write(json.dumps(_as_object(loaded, [*chosen, *left]), indent=2) + "\n")
        return
    rows = [*map(_row, chosen), *map(_short_row, left)]
    key_width = max((len(row[0]) for row in rows), default=0)
    value_width = min(max((len(row[1]) for row in rows), default=0), _WIDEST_VALUE)
    for position, (key, value, layer) in enumerate(rows):
        if position == len(chosen) and chosen:
            out.write("\n")
        out.write(f"{key:<{key_width}}  {value:<{value_width}}  {layer}\n")


def _row(one: EffectiveValue) -> tuple[str, str, str]:
    value = "(not set)" if one.value is None else toml_value(one.value)
    return sanitize_line(one.key), sanitize_line(value), sanitize_line(_layer_text(one.layer))


def _short_row(one: EffectiveValue) -> tuple[str, str, str]:
    """A row whose value is cut; `--json` has all of it."""
    key, value, layer = _row(one)
    return key, value if len(value) <= _WIDEST_VALUE else f"{value[: _WIDEST_VALUE - 1]}…", layer


def _layer_text(layer: Layer) -> str:
    return layer.kind if layer.path is None else f"{layer.kind} {layer.path}"


def _as_object(loaded: LoadedConfig, values: Sequence[EffectiveValue]) -> dict[str, Any]:
    return {
        "layers": [_layer_object(layer) for layer in loaded.layers],
        "trust": loaded.trust,
        "project_root": None if loaded.project_root is None else str(loaded.project_root),
        "warnings": list(loaded.warnings),
        "settings": {one.key: {"value": one.value, **_layer_object(one.layer)} for one in values},
    }


def _layer_object(layer: Layer) -> dict[str, str | None]:
    return {"layer": layer.kind, "file": None if layer.path is None else str(layer.path)}

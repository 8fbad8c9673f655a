"""Layers of settings: reading TOML, merging layers, and where each value comes from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.config.keys import KeyPath, dotted
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value

LayerType: TypeAlias = Literal["managed", "flags", "project", "profile", "user", "system", "defaults"]

MAX_DEPTH: Final = 64
# Lists that grow from layer to layer instead of being replaced.
_GROWING: Final[frozenset[KeyPath]] = frozenset({("skills", "config")})


class NestedTooDeeply(Exception):
    """Tables and lists that are nested deeper than any setting."""


class Layer(Value):
    """A source of settings; flags and defaults have no file."""

    layer_type: LayerType
    path: Path | None = None


class LayerSource(Value):
    """The text or flag that a layer was read from, to locate its keys in messages."""

    layer: Layer
    text: str = ""
    flag: str = ""

    def where(self, path: KeyPath) -> str:
        """`` in `/x/config.toml` line 3 `` or `` in `-c model=5` ``."""
        if self.layer.path is None:
            return f"in {self.flag}"
        line = _faults().line_of(self.text, path)
        return f"in `{self.layer.path}`" + (f" line {line}" if line else "")


class Checked(Value):
    """A layer's keys after the check, as nested tables of final values."""

    source: LayerSource
    tree: dict[str, Any]


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The tables of a file's text; raise `UserError` naming file, line, column and reason."""
    try:
        return read_toml(text)
    except NestedTooDeeply as error:
        raise ConfigError(
            f"cannot read `{path}`: nested too deeply", hint="no setting is deeper than ten tables"
        ) from error
    except ValueError as error:
        reason, fix = toml_fault(error, text)
        raise ConfigError(f"cannot read `{path}`{reason}", hint=fix or None) from error


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; raise `NestedTooDeeply` or `ValueError`."""
    # `tomllib` takes time with the square of a key's length.
    if text.count(".") > MAX_DEPTH and _faults().longest_key(text) > MAX_DEPTH:
        raise NestedTooDeeply
    try:
        tree = tomllib.loads(text)
    except RecursionError as error:
        raise NestedTooDeeply from error
    if is_too_deep(tree):
        raise NestedTooDeeply
    return tree


def merge(layers: Sequence[Checked]) -> dict[str, Any]:
    """Merge the trees, lowest first; tables are merged key by key, other values are replaced."""
    merged: dict[str, Any] = {}
    for layer in layers:
        _lay_over(merged, layer.tree, ())
    return merged


def origins_of(tree: Mapping[str, Any], layers: Sequence[Checked]) -> dict[str, Layer]:
    """The highest layer that sets each value of a merged tree, by dotted key."""
    highest = {path: layer.source.layer for layer in layers for path, _ in leaves(layer.tree)}
    return {dotted(path): highest[path] for path, _ in leaves(tree)}


def leaves(tree: Mapping[str, Any], path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value of a tree that is not a table, with its path."""
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from leaves(as_object(cast("object", value)), (*path, name))
        else:
            yield (*path, name), value


def holds(tree: Mapping[str, Any], path: KeyPath) -> bool:
    """Whether a tree has a value, and not a table, at a path."""
    value: object = tree
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return False
        value = cast("dict[str | int, object]", value)[key]
    return not isinstance(value, dict)


def nested(path: Sequence[str], value: object) -> dict[str, Any]:
    """A tree with one value."""
    tree: Any = value
    for name in reversed(path):
        tree = {name: tree}
    return tree


def _lay_over(base: dict[str, Any], over: Mapping[str, Any], path: KeyPath) -> None:
    for name, value in over.items():
        below, here = base.get(name), (*path, name)
        if isinstance(value, dict):
            table = as_object(cast("object", below))
            # A fresh dict, because `base` must not share tables with the layer it came from.
            base[name] = dict(table)
            _lay_over(base[name], as_object(cast("object", value)), here)
        elif here in _GROWING and isinstance(below, tuple):
            base[name] = (*cast("tuple[Any, ...]", below), *value)
        else:
            base[name] = value


def is_too_deep(value: object) -> bool:
    """Whether tables and lists are nested further than any setting is."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def toml_fault(error: ValueError, text: str) -> tuple[str, str]:
    """`` line 1 column 9: reason``: where a text stops being TOML and why; and what to write there, or nothing."""
    message = str(error)
    reason, _, position = message.rpartition(" (at ")
    if not reason:
        return ": a number has too many digits" if "digits" in message else f": {message.lower()}", ""
    found = re.match(r"line (\d+), column (\d+)", position)
    line, column = map(int, found.groups()) if found else (text.count("\n") + 1, len(text) - text.rfind("\n"))
    fault = _faults().explain(text, reason, line, column)
    return f" line {fault.line} column {fault.column}: {fault.reason}", fault.fix


def _faults() -> ModuleType:
    """The module that explains TOML errors, loaded only for a file that has one."""
    from codex_py.config import toml_faults

    return toml_faults

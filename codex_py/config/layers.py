"""Layers of settings: reading TOML, merging layers, and where each value comes from."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from codex_py.config.keys import KeyPath, dotted
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.text.credentials import has_credential, is_secret_name

LayerType: TypeAlias = Literal["managed", "flags", "project", "profile", "user", "system", "defaults"]

MAX_DEPTH: Final = 64
# Lists that grow from layer to layer instead of being replaced.
_GROWING: Final[frozenset[KeyPath]] = frozenset({("skills", "config")})
_NAME: Final = r"""(?:[\w-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')"""
_KEY: Final = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*+"
# A header of a table, or the key of a setting, at the start of a line.
_STATEMENT: Final = rf"[ \t]*(?:(\[\[?)[ \t]*({_KEY})|({_KEY})[ \t]*=)"
_LONG_TEXT: Final = r"""(?s)\"{3}(?:\\.|[^\\])*?\"{3}|'{3}.*?'{3}"""
# `tomllib` takes time with the square of a key's length.
_LONG_KEY: Final = rf"(?m)(?:^|[\[{{,])[ \t]*{_NAME}(?:[ \t]*\.[ \t]*{_NAME}){{{MAX_DEPTH}}}"
_MAX_SHOWN: Final = 120
# Tables in which every value may be a secret.
_SECRET_TABLES: Final = frozenset({"env", "http_headers", "query_params", "set"})


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
        line = line_of(self.text, path)
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
        raise ConfigError(f"cannot read `{path}`{toml_fault(error, text)}") from error


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text; raise `NestedTooDeeply` or `ValueError`."""
    if text.count(".") >= MAX_DEPTH and re.search(_LONG_KEY, text):
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


def line_of(text: str, path: KeyPath) -> int | None:
    """The line (from 1) of a key's statement, or else of the nearest table round it; None when there is none."""
    nearest, depth = None, 0
    for line, found in _statements(text):
        common = 0
        while common < min(len(path), len(found)) and path[common] == found[common]:
            common += 1
        if common > depth:
            nearest, depth = line, common
    return nearest


def toml_fault(error: ValueError, text: str) -> str:
    """`` line 1 column 9: invalid value in `model = gpt-5` ``; the nearest key in place of a line with a secret."""
    message = str(error)
    reason, _, position = message.rpartition(" (at ")
    if not reason:
        return ": a number has too many digits" if "digits" in message else f": {message.lower()}"
    found = re.match(r"line (\d+), column (\d+)", position)
    line, column = map(int, found.groups()) if found else (text.count("\n") + 1, len(text) - text.rfind("\n"))
    key: KeyPath = ()
    for start, path in _statements(text):
        if start <= line:
            key = path
    row = text.split("\n")[line - 1].strip()
    # A value that is set twice is right in itself: its key says it all.
    shows_key = not row or reason.startswith("Cannot overwrite") or _may_hold_secret(row, key)
    shown = dotted(key) if shows_key else row
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[:_MAX_SHOWN]}…"
    return f" line {line} column {column}: {reason[0].lower()}{reason[1:]}" + (f" in `{shown}`" if shown else "")


def _may_hold_secret(row: str, key: KeyPath) -> bool:
    names = {str(name) for name in key}
    if names & _SECRET_TABLES or any(map(is_secret_name, names)):
        return True
    return "@" in row or has_credential(row) or any(map(is_secret_name, re.findall(r"[\w-]+", row)))


def _statements(text: str) -> Iterator[tuple[int, KeyPath]]:
    """The line (from 1) and the path of every header and key at the start of a line."""
    entries: dict[KeyPath, int] = {}
    table: KeyPath = ()
    rows = re.sub(_LONG_TEXT, lambda found: "\n" * found[0].count("\n"), text).split("\n")
    for line, row in enumerate(rows, 1):
        statement = re.match(_STATEMENT, row)
        if statement is None:
            continue
        bracket, header, key = statement.groups()
        names = [_plain(name) for name in re.findall(_NAME, header or key)]
        if bracket:
            table = _table(names, entries, is_array=bracket == "[[")
        yield line, table if bracket else (*table, *names)


def _table(names: Sequence[str], entries: dict[KeyPath, int], *, is_array: bool) -> KeyPath:
    """The path of a header, with the position in each array of tables on the way."""
    path: KeyPath = ()
    for position, name in enumerate(names, 1):
        path = (*path, name)
        if is_array and position == len(names):
            entries[path] = entries.get(path, -1) + 1
        if path in entries:
            path = (*path, entries[path])
    return path


def _plain(name: str) -> str:
    """A key's name without its quotes."""
    if name[0] not in "\"'":
        return name
    try:
        return next(iter(tomllib.loads(f"{name} = 0")))
    except ValueError:
        return name[1:-1]

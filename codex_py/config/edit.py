"""Changing one value in a configuration file, comments and layout kept."""

from __future__ import annotations

import os
import tomllib
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from typing import Any, cast

from codex_py.config.files import read_text
from codex_py.config.keys import dotted
from codex_py.config.layers import nested, parse_toml
from codex_py.config.trust import find_root, real_path
from codex_py.errors import UserError
from codex_py.paths import make_private_dir, open_private


def trust_project(home: Path, folder: Path) -> Path:
    """Note in the user's `config.toml` that they trust the git repository round `folder`, or else `folder` itself.

    Gives back the folder that is trusted now. Raises `UserError` when the file cannot be read or written.
    """
    place = real_path(folder)
    root = find_root(place, (".git",)) or place
    set_value(home / "config.toml", ("projects", str(root), "trust_level"), "trusted")
    return root


def set_value(path: Path, keys: Sequence[str], value: Any) -> None:
    """Set one key of a TOML file; the file is replaced as a whole or not at all, and only the user can read it.

    A link is followed, so that a file kept elsewhere stays there. Raises `UserError` when it cannot be done.
    """
    target = real_path(path)
    before = read_text(target) or ""
    tree = parse_toml(before, path)
    after = _edited(before, keys, value)
    if after is None or tomllib.loads(after) != _with_value(tree, keys, value):
        raise UserError(
            f"cannot set `{dotted(tuple(keys))}` in `{path}`: its tables are written in a way that cannot be edited"
        )
    try:
        make_private_dir(target.parent)
        _replace(target, after.encode())
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {(error.strerror or str(error)).lower()}") from error


def _edited(text: str, keys: Sequence[str], value: Any) -> str | None:
    """The text with the value set, None where a table was expected and something else stands."""
    # Loaded here, because reading the configuration does not need it.
    import tomlkit
    from tomlkit.exceptions import TOMLKitError
    from tomlkit.items import InlineTable

    try:
        document = tomlkit.parse(text)
        table = cast("MutableMapping[str, Any]", document)
        for depth, key in enumerate(keys[:-1]):
            if key not in table:
                # Of new tables only the last one gets a header of its own; an inline one cannot hold headers.
                inline = isinstance(table, InlineTable)
                table[key] = tomlkit.inline_table() if inline else tomlkit.table(depth < len(keys) - 2)
            inner: object = table[key]
            if not isinstance(inner, MutableMapping):
                return None
            table = cast("MutableMapping[str, Any]", inner)
        table[keys[-1]] = value
        return tomlkit.dumps(document)
    except (TOMLKitError, ValueError):
        return None


def _with_value(tree: dict[str, Any], keys: Sequence[str], value: Any) -> dict[str, Any]:
    """What reading the edited file must give."""
    return _overlaid(tree, nested(keys, value))


def _overlaid(tree: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(tree)
    for name, value in over.items():
        below = merged.get(name)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[name] = _overlaid(cast("dict[str, Any]", below), cast("dict[str, Any]", value)) if both else value
    return merged


def _replace(target: Path, content: bytes) -> None:
    """Write beside the file, then rename over it: a reader sees the old text or the new one."""
    draft = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}")
    descriptor = open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(descriptor)
        draft.replace(target)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

"""Checking a tree that was read, with errors and warnings that say where the key stands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.config.keys import dotted, nearest, toml_value
from codex_py.config.kinds import Kind, Reading, UnknownKey, WrongValue
from codex_py.config.layers import Source
from codex_py.errors import UserError

_LONGEST_VALUE: Final = 80


def check_tree(
    kind: Kind, tree: Mapping[str, Any], *, source: Source, folder: Path, home: str
) -> tuple[dict[str, Any], list[UnknownKey]]:
    """The tree with final values, and the keys nobody knows; raise `UserError` for the first wrong value.

    Relative paths start at `folder`; `~` is `home`.
    """
    reading = Reading(folder, home, [])
    try:
        return kind.check(tree, (), reading), reading.unknown
    except WrongValue as error:
        raise wrong_value(error, source) from error


def wrong_value(error: WrongValue, source: Source) -> UserError:
    """The line that names the key, what was found, where, and what is allowed."""
    found = _shortened(toml_value(error.value))
    where = source.where(error.path)
    if error.secret:
        # The words of a flag hold the value too.
        found, where = "…", where if source.layer.path else "in `-c`"
    hint = None
    if error.path[-1:] == ("wire_api",) and error.value == "chat":
        hint = "the chat completions protocol is not spoken here; most servers that had it now have `/responses` too"
    return UserError(f"cannot use `{dotted(error.path)} = {found}` {where}: {error.allowed}", hint=hint)


def unknown_key(unknown: UnknownKey, source: Source, *, strict: bool) -> str:
    """The line about a key nobody knows, with the nearest one that somebody does.

    Raises `UserError` with it when unknown keys are errors.
    """
    name = str(unknown.path[-1])
    near = nearest(name, unknown.known)
    guess = f"did you mean `{dotted((*unknown.path[:-1], near))}`?" if near else ""
    found = f"unknown key `{dotted(unknown.path)}` {source.where(unknown.path)}"
    if strict:
        raise UserError(f"{found}: {guess}" if guess else found)
    return f"{found} is ignored" + (f"; {guess}" if guess else "")


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "…"

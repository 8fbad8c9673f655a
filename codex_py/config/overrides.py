"""`-c key=value`: the key is dotted, the value is TOML, or else the text itself."""

from __future__ import annotations

from typing import Any

from codex_py.config.keys import parse_key, split_assignment
from codex_py.config.layers import NestedTooDeeply, read_toml
from codex_py.errors import UsageError


def parse_override(text: str) -> tuple[tuple[str, ...], Any]:
    """The key and the value of one `-c`; raise `UsageError` when it is not a `key=value`."""
    assignment = split_assignment(text)
    if assignment is None or not assignment[0]:
        raise UsageError(f"not a setting: `-c {text}`", hint="write `-c key=value`, for example `-c model=gpt-5.5`")
    key, raw = assignment
    return parse_key(key), _value(raw, text)


def _value(raw: str, text: str) -> Any:
    try:
        tree = read_toml(f"value = {raw}")
    except NestedTooDeeply as error:
        raise UsageError(f"nested too deeply: `-c {text[:60]}…`") from error
    except ValueError:
        tree = {}
    # More than one key means that a line break in the value began another statement.
    return tree["value"] if set(tree) == {"value"} else raw.strip().strip("\"'")

"""The `[plugins."name@marketplace"]` tables of the user's `config.toml`: switched and removed, comments kept."""

from __future__ import annotations

from pathlib import Path

from codex_py.config.edit import set_value
from codex_py.config.mcp_entries import remove_table


def switch_plugin(file: Path, plugin_id: str, *, enabled: bool) -> None:
    """Have a plugin on or off from the next session on. Raises `UserError` when the file cannot be edited."""
    set_value(file, ("plugins", plugin_id, "enabled"), enabled)


def remove_plugin_entry(file: Path, plugin_id: str) -> bool:
    """Remove what is said of a plugin; False when nothing is. Raises `UserError` as `switch_plugin`."""
    return remove_table(file, "plugins", plugin_id)

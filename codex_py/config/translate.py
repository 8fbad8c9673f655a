"""Other ways of saying what a setting says, written as that setting in the layer they stand in.

So that whoever reads, tightens or overrules the setting need not know of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from codex_py.config.keys import toml_value
from codex_py.config.kinds import wrong_word
from codex_py.config.layers import Checked, holds
from codex_py.config.record import settings_of
from codex_py.config.sections import SandboxWorkspaceWrite
from codex_py.errors import ConfigError

_SEARCHES: Final = {"web_search_request": "live", "web_search_cached": "cached"}
PERMISSION_MODES: Final = {
    ":read-only": "read-only",
    ":workspace": "workspace-write",
    ":danger-full-access": "danger-full-access",
}


def translated(layers: Sequence[Checked]) -> list[Checked]:
    """The layers, lowest first, with `default_permissions` as a sandbox mode and old names of features as settings.

    Raises `UserError` for a set of permissions that decides and that cannot be kept here.
    """
    searched = _search(layers)
    modes = [holds(checked.tree, ("sandbox_mode",)) for checked in layers]
    done: list[Checked] = []
    for position, layer in enumerate(layers):
        added: dict[str, Any] = {}
        if searched is not None and searched[0] == position:
            added["web_search"] = searched[1]
        if "default_permissions" in layer.tree:
            # What is decided further up does not count, so that it need not be understood either.
            added |= _permissions(layer, decides=not any(modes[position + 1 :]))
        done.append(Checked(layer.source, {**layer.tree, **added}) if added else layer)
    return done


def _search(layers: Sequence[Checked]) -> tuple[int, str] | None:
    """The layer whose older switch is on, and what it says. They count where nobody says `web_search`."""
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
        # A named set is whole: what `[sandbox_workspace_write]` adds to the mode is no part of it.
        own = {key: setting.default for key, setting in settings_of(SandboxWorkspaceWrite).items()}
        return {"sandbox_mode": PERMISSION_MODES[name], "sandbox_workspace_write": own}
    if not decides:
        return {}
    where = layer.source.where(("default_permissions",))
    raise ConfigError(
        f"cannot use `default_permissions = {toml_value(name)}` {where}: {wrong_word(name, tuple(PERMISSION_MODES))}",
        hint="for a profile of your own use `sandbox_mode`, `sandbox_workspace_write` and `sandbox.deny_read`",
    )

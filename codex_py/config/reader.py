"""Reads layer after layer and collects the warnings about them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.config.checking import check_tree, unknown_key
from codex_py.config.files import read_text
from codex_py.config.keys import KeyPath
from codex_py.config.kinds import UnknownKey
from codex_py.config.layers import Checked, Layer, LayerSource, LayerType, parse_toml
from codex_py.config.permissions import weak_permissions, without_commands
from codex_py.config.record import RecordSection
from codex_py.config.schema import BUILT_IN_PROVIDERS, FOREIGN_KEYS, Config
from codex_py.errors import ConfigError
from codex_py.text.nearest import nearest

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
    """`user_home` is what `~` means; with `strict` an unknown key is an error.

    `in_sandbox` is that this program runs inside a sandbox of its own, which hides the user's settings.
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
        """A file of the user or of the machine, not checked yet.

        What can run something is left out when others can write the file.
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
        """Check a tree; relative paths in it start at `folder`. Raises `UserError` for a wrong value."""
        checked, unknown = check_tree(SCHEMA, tree, source=source, directory=directory, home=self._user_home)
        for extra_key in unknown:
            self._note_unknown(extra_key, source)
        for name in checked.get("model_providers", {}):
            if name in BUILT_IN_PROVIDERS:
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

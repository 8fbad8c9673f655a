"""The plugins a user has switched on, and what their manifests and hook files contain. Nothing is run here.

A manifest is read within bounds, and whatever path it names counts only inside the plugin's own directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from codex_py.paths import PLUGIN_CACHE, is_directory
from codex_py.plugins.record import change_in
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.value import Value
from codex_py.skills.namespace import MANIFEST_DIRECTORIES
from codex_py.skills.roots import PluginSkills
from codex_py.text.files import FileRefused, read_inside

_MANIFEST: Final = "plugin.json"
_MAX_BYTES: Final = 64 * 1024
_MAX_DIRECTORIES: Final = 16


class Plugin(Value):
    """A plugin on disk: `id` is `name@marketplace`, `root` its real directory, `name` what its skills' names begin
    with.

    `manifest` is empty where none can be read. `skills` are the directories with its skills, whether they exist or not.
    """

    id: str
    root: Path
    name: str
    manifest: Mapping[str, Any]
    skills: tuple[Path, ...]

    @property
    def version(self) -> str:
        return _text(self.manifest.get("version"))

    @property
    def about(self) -> str:
        """The plugin's description of itself, or ""."""
        return _text(self.manifest.get("description"))


def enabled_plugins(home: Path, plugins: Mapping[str, Any]) -> tuple[Plugin, ...]:
    """The plugins of `[plugins."name@marketplace"] enabled = true` that are there, in the order of the configuration.

    Those that are not as they were installed are left out; `checked_plugins` has them too. A plugin lies in
    `plugins/cache/<marketplace>/<name>/<version>` below CODEX_HOME; `local` counts, else the latest version.
    """
    return tuple(plugin for plugin, change in checked_plugins(home, plugins) if change is None)


def checked_plugins(home: Path, plugins: Mapping[str, Any]) -> Iterator[tuple[Plugin, str | None]]:
    """The plugins that are switched on, each with what is not as it was installed, or None."""
    for plugin_id, entry in plugins.items():
        if as_object(entry).get("enabled") is True and (plugin := installed_plugin(home, plugin_id)) is not None:
            yield plugin, change_in(home, plugin_id, plugin.root)


def held_plugin_line(plugin: Plugin, change: str) -> str:
    """Says that a plugin is not used, and what the user can do."""
    return (
        f"the plugin `{plugin.id}` is not used: {change} (`codex-py plugin accept {plugin.id}` shows it, and asks;"
        " `codex-py plugin add` installs it again)"
    )


def plugin_skills(home: Path, plugins: Mapping[str, Any]) -> tuple[PluginSkills, ...]:
    """The skill directories of those plugins."""
    return tuple(
        PluginSkills(directory, plugin.root, plugin.id, plugin.name)
        for plugin in enabled_plugins(home, plugins)
        for directory in plugin.skills
    )


def installed_plugin(home: Path, plugin_id: str) -> Plugin | None:
    """The plugin of this id as it is installed; None when it is not."""
    directory = plugin_directory(home, plugin_id)
    try:
        versions = (
            [entry for entry in directory.iterdir() if is_directory(entry) and entry.name[0] != "."]
            if directory
            else []
        )
    except OSError:
        return None
    if not versions:
        return None
    return read_plugin(max(versions, key=lambda entry: _age(entry.name)), plugin_id)


def plugin_directory(home: Path, plugin_id: str) -> Path | None:
    """Where all versions of a plugin lie; None for what can be no id."""
    name, _, marketplace = plugin_id.partition("@")
    if not (is_directory_name(name) and is_directory_name(marketplace)):
        return None
    return home / PLUGIN_CACHE / marketplace / name


def read_plugin(directory: Path, plugin_id: str) -> Plugin:
    """The plugin in a directory. One without a manifest that can be read has only its usual directories."""
    root = Path(os.path.realpath(directory))
    manifest = read_manifest(root) or {}
    name = manifest.get("name")
    return Plugin(
        plugin_id,
        root,
        name if isinstance(name, str) and name else plugin_id.partition("@")[0],
        manifest,
        _skill_directories(root, manifest.get("skills")),
    )


def read_manifest(root: Path) -> dict[str, Any] | None:
    """The first manifest below a real directory that is a JSON object of at most 64 KiB; None when there is none."""
    for directory in MANIFEST_DIRECTORIES:
        found = read_json(root, root / directory / _MANIFEST)
        if found is not None:
            return found
    return None


def read_json(root: Path, path: Path) -> dict[str, Any] | None:
    """The JSON object in a regular file below `root`, at most 64 KiB; None for anything else."""
    try:
        head = read_inside(root, path, _MAX_BYTES)
        value: object = None if head is None or head.size > _MAX_BYTES else decode_json(head.raw)
    except (FileRefused, ValueError, RecursionError):
        return None
    return as_object(cast("object", value)) if isinstance(value, dict) else None


def inside(root: Path, written: str) -> Path | None:
    """Resolve a path written in a plugin's files, links included; None when it leads outside the plugin."""
    if not written or "\0" in written:
        return None
    path = Path(os.path.realpath(root / written))
    return path if path.is_relative_to(root) else None


def is_directory_name(text: str) -> bool:
    """Whether a text can be the name of one directory."""
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text


def _skill_directories(root: Path, chosen: object) -> tuple[Path, ...]:
    """The directories a manifest names in place of `skills`; those outside the plugin do not count."""
    written = [chosen] if isinstance(chosen, str) else as_list(chosen)
    names = [path for path in written if isinstance(path, str) and path][:_MAX_DIRECTORIES] or ["skills"]
    return tuple(directory for name in names if (directory := inside(root, name)) is not None)


def _age(version: str) -> tuple[bool, list[tuple[int, int, str]]]:
    """Grows with the version: `1.9` < `1.10-beta` < `1.10` < `local`."""
    numbers = [
        (2, int(text), "") if re.fullmatch("[0-9]{1,18}", text) else (0, 0, text)
        for text in re.split(r"[.+-]", version)
    ]
    return version == "local", [*numbers, (1, 0, "")]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_FILE: Final = "hooks/hooks.json"
_MAX_FILES: Final = 16


class WrittenHooks(Value):
    """A JSON document with hooks, and the file it is from; None where it stands in the manifest."""

    document: dict[str, Any]
    path: Path | None


def written_hooks(plugin: Plugin) -> list[WrittenHooks]:
    """The hooks of `hooks/hooks.json`, or those that the manifest's `hooks` has or names.

    A file that is missing, outside the plugin, over 64 KiB or no JSON object counts as none.
    """
    named: object = plugin.manifest.get("hooks")
    found: list[WrittenHooks] = []
    for source in ([_FILE] if named is None else as_list(named) or [named])[:_MAX_FILES]:
        if not isinstance(source, str):
            found.append(WrittenHooks(as_object(source), None))
        elif (path := inside(plugin.root, source)) is not None and (document := read_json(plugin.root, path)):
            found.append(WrittenHooks(document, path))
    return found

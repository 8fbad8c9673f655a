"""The skill folders of the plugins a user has switched on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import as_object, decode_json
from codex_py.skills.namespace import MANIFEST_FOLDERS
from codex_py.skills.roots import PluginSkills
from codex_py.text.regular_file import FileRefused, read_inside

_MOST_BYTES: Final = 64 * 1024


def plugin_skills(home: Path, plugins: Mapping[str, Any]) -> tuple[PluginSkills, ...]:
    """The folders of `[plugins."name@marketplace"] enabled = true`, in the order of the configuration.

    A plugin lies in `plugins/cache/<marketplace>/<name>/<version>` below CODEX_HOME; `local` counts, else the
    latest version. Its manifest may name another folder than `skills`, inside the plugin.
    """
    found = (
        _skills_of(home, plugin_id) for plugin_id, entry in plugins.items() if as_object(entry).get("enabled") is True
    )
    return tuple(plugin for plugin in found if plugin is not None)


def _skills_of(home: Path, plugin_id: str) -> PluginSkills | None:
    name, _, marketplace = plugin_id.partition("@")
    if not (_is_folder_name(name) and _is_folder_name(marketplace)):
        return None
    folder = home / "plugins" / "cache" / marketplace / name
    try:
        versions = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return None
    if not versions:
        return None
    root = max(versions, key=lambda entry: _age(entry.name)).resolve()
    manifest = _manifest(root)
    chosen = manifest.get("skills")
    skills = (root / chosen).resolve() if isinstance(chosen, str) and chosen and "\0" not in chosen else root / "skills"
    if not skills.is_relative_to(root):
        return None
    namespace = manifest.get("name")
    return PluginSkills(skills, root, plugin_id, namespace if isinstance(namespace, str) and namespace else name)


def _age(version: str) -> tuple[bool, list[tuple[int, int, str]]]:
    """Grows with the version: `1.9` < `1.10-beta` < `1.10` < `local`."""
    parts = [
        (2, int(part), "") if re.fullmatch("[0-9]{1,18}", part) else (0, 0, part)
        for part in re.split(r"[.+-]", version)
    ]
    return version == "local", [*parts, (1, 0, "")]


def _is_folder_name(text: str) -> bool:
    return text not in ("", ".", "..") and "/" not in text and "\0" not in text


def _manifest(root: Path) -> dict[str, Any]:
    for folder in MANIFEST_FOLDERS:
        try:
            head = read_inside(root, root / folder / "plugin.json", _MOST_BYTES)
            if head is not None and head.size <= _MOST_BYTES:
                return as_object(decode_json(head.raw))
        except (FileRefused, ValueError):
            continue
    return {}

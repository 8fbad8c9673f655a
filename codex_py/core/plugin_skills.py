"""The skill folders of the plugins a user has switched on."""

from __future__ import annotations

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

    A plugin lies in `plugins/cache/<marketplace>/<name>/<version>` below CODEX_HOME; the last version by name counts.
    Its manifest may name another folder than `skills`, inside the plugin.
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
        versions = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    except OSError:
        return None
    if not versions:
        return None
    root = versions[-1].resolve()
    manifest = _manifest(root)
    chosen = manifest.get("skills")
    skills = (root / chosen).resolve() if isinstance(chosen, str) and chosen else root / "skills"
    if not skills.is_relative_to(root):
        return None
    namespace = manifest.get("name")
    return PluginSkills(skills, root, plugin_id, namespace if isinstance(namespace, str) and namespace else name)


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

"""Lists what a plugin contains, for users who decide about it. Nothing of it is run."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from typing import Final, NamedTuple

from codex_py.hooks.schema import Hook, HookOrigin, hook_tables, parse_hooks
from codex_py.paths import is_directory
from codex_py.plugins.manifests import Plugin, inside, read_json, written_hooks
from codex_py.plugins.servers import Entry, plugin_servers
from codex_py.protocol.encoding import as_object
from codex_py.skills.model import SkillRoot
from codex_py.skills.scan import scan_root

_UNUSED: Final = ("commands", "agents", "lspServers", "outputStyles")


class PluginHook(NamedTuple):
    """A command that runs at an event; `matcher` limits it to some tools, or is empty."""

    event: str
    matcher: str
    command: str


class PluginContents(NamedTuple):
    """A plugin's skills by full name, its servers, hooks and connectors; `problems` say what cannot be used."""

    skills: tuple[str, ...]
    servers: dict[str, Entry]
    hooks: tuple[PluginHook, ...]
    connectors: tuple[str, ...]
    problems: tuple[str, ...]


def plugin_contents(plugin: Plugin) -> PluginContents:
    """Read the contents of a plugin; unreadable files become problems and raise nothing."""
    skills: list[str] = []
    problems: list[str] = []
    for directory in plugin.skills:
        root = SkillRoot(directory, "user", "plugin", plugin.name, plugin.id, plugin.root, inside=plugin.root)
        scan = scan_root(root, None)
        skills += [record.name for record in scan.records if not record.error]
        refused = [(record.file.path, record.error) for record in scan.records if record.error]
        refused += [(str(refusal.path), refusal.message) for refusal in scan.refused]
        problems += [f"skill `{os.path.relpath(path, plugin.root)}`: {why}" for path, why in refused]
    servers = plugin_servers(plugin)
    hooks: list[PluginHook] = []
    for written in written_hooks(plugin):
        origin = HookOrigin("plugin", written.path, plugin.root, plugin.id)
        read = parse_hooks(hook_tables(written.document), origin)
        hooks += [_plugin_hook(hook) for hook in read.hooks]
        problems += read.warnings
    return PluginContents(
        tuple(sorted(skills)),
        servers.entries,
        tuple(hooks),
        tuple(_connectors(plugin)),
        tuple(refusal.replace(f"{plugin.root}/", "") for refusal in (*problems, *servers.problems, *_unused(plugin))),
    )


def _plugin_hook(hook: Hook) -> PluginHook:
    command = hook.command if isinstance(hook.command, str) else shlex.join(hook.command)
    return PluginHook(hook.event, hook.matcher.text, command)


def _unused(plugin: Plugin) -> Iterator[str]:
    """Parts of the plugin that only other programs use."""
    for name in _UNUSED:
        if plugin.manifest.get(name) or is_directory(plugin.root / name):
            yield f"its {name}, which are for other programs"


def _connectors(plugin: Plugin) -> Iterator[str]:
    """The connectors that the plugin's `apps` name; whether a server offers them is not checked."""
    named = plugin.manifest.get("apps")
    path = inside(plugin.root, named) if isinstance(named, str) else None
    written = read_json(plugin.root, path) if path is not None else None
    for name, app in as_object((written or {}).get("apps")).items():
        connector = as_object(app).get("id")
        yield f"{name} ({connector})" if isinstance(connector, str) else name

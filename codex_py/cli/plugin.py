"""`codex-py plugin`: bundles of skills, MCP servers and hooks, added from a folder or a repository, listed, removed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from codex_py.cli import plugin_view as view
from codex_py.cli.consent import is_agreed
from codex_py.cli.plugin_install import PluginRequest, install_staged, staged_plugin, uninstall_plugin
from codex_py.cli.tables import print_json
from codex_py.cli.typer_command import run_commands
from codex_py.config.load import ConfigRequest, load_config
from codex_py.config.plugin_entries import remove_plugin_entry, switch_plugin
from codex_py.core.plugin_contents import plugin_contents
from codex_py.errors import UsageError, UserError
from codex_py.paths import codex_home
from codex_py.protocol.encoding import as_object
from codex_py.skills.plugin_record import change_in, record_plugin
from codex_py.skills.plugins import CACHE, installed_plugin
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

_ABOUT: Final = "Plugins: bundles of skills, MCP servers and hooks. Nothing of one is run when it is added."

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME[@MARKETPLACE]", help="The plugin, as `list` names it.")]


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py plugin` with these arguments; give back the exit status."""
    commands = {
        "list": list_plugins,
        "add": add_plugin,
        "remove": remove_plugin,
        "enable": enable_plugin,
        "disable": disable_plugin,
        "accept": accept_plugin,
    }
    return run_commands(commands, arguments, name="plugin", about=_ABOUT)


def list_plugins(as_json: Json = False) -> int:
    """List the plugins that are configured or installed, and how much each brings."""
    home = codex_home(os.environ)
    shown = [_plugin_view(home, plugin_id, enabled=enabled) for plugin_id, enabled in _known(home).items()]
    view.print_plugins(shown, sys.stdout, as_json=as_json)
    if not shown and not as_json:
        _print_note("no plugins are installed; `codex-py plugin add` adds one")
    return 0


def add_plugin(
    source: Annotated[
        str, typer.Argument(metavar="FOLDER|URL[#REF]", help="A plugin's folder, or a git repository with it.")
    ],
    path: Annotated[str | None, typer.Option("--path", metavar="DIR", help="The plugin's folder in there.")] = None,
    plugin: Annotated[
        str | None, typer.Option("--plugin", metavar="NAME", help="Which plugin, of a marketplace with several.")
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> int:
    """Copy a plugin to $CODEX_HOME/plugins and switch it on; an earlier one of that name is replaced.

    What it brings is shown first, with every command it would run in sessions. Nothing is run now.
    """
    home = codex_home(os.environ)
    with staged_plugin(PluginRequest(source, path, plugin), home, os.environ) as staged:
        contents = plugin_contents(staged.plugin)
        for line in view.content_lines(staged.plugin, contents):
            _print_note(line)
        if not yes and not is_agreed("install it?", needs=f"installing the plugin `{staged.plugin.id}`"):
            _print_note("nothing was installed")
            return 1
        added = install_staged(staged, home)
    try:
        switch_plugin(home / "config.toml", added.id, enabled=True)
    except UserError:
        uninstall_plugin(home, added.id)
        raise
    if as_json:
        shown = view.PluginView(added.id, True, added, plugin_contents(added))
        print_json(view.plugin_record(shown), sys.stdout)
    _print_note(f"added the plugin `{added.id}`; sessions have it from now on")
    return 0


def remove_plugin(name: Name, as_json: Json = False) -> int:
    """Remove a plugin: its files, and its table in $CODEX_HOME/config.toml."""
    home = codex_home(os.environ)
    plugin_id = _find(home, name)
    # The table first: what is not switched on does not run, whatever is left of it.
    remove_plugin_entry(home / "config.toml", plugin_id)
    uninstall_plugin(home, plugin_id)
    if as_json:
        print_json({"id": plugin_id, "removed": True}, sys.stdout)
    _print_note(f"removed the plugin `{plugin_id}`")
    return 0


def enable_plugin(name: Name) -> int:
    """Switch an installed plugin on."""
    return _switch(name, enabled=True)


def disable_plugin(name: Name) -> int:
    """Switch a plugin off; its files stay."""
    return _switch(name, enabled=False)


def accept_plugin(name: Name, yes: Yes = False) -> int:
    """Use a plugin although its files are not as they were installed.

    What it brings now is shown first. Until then sessions have none of its skills, MCP servers and hooks.
    """
    home = codex_home(os.environ)
    plugin_id = _find(home, name)
    found = installed_plugin(home, plugin_id)
    if found is None:
        raise UsageError(f"the plugin `{plugin_id}` is not installed", hint="`codex-py plugin add` installs one")
    change = change_in(home, plugin_id, found.root)
    if change is None:
        _print_note(f"the plugin `{plugin_id}` is as it was installed")
        return 0
    for line in view.content_lines(found, plugin_contents(found)):
        _print_note(line)
    _print_note(f"  changed: {change}")
    if not yes and not is_agreed("use it as it is now?", needs=f"accepting the plugin `{plugin_id}`"):
        _print_note("nothing was changed")
        return 1
    record_plugin(home, plugin_id, found.root)
    _print_note(f"accepted the plugin `{plugin_id}` as it is now; sessions have it from now on")
    return 0


def _switch(name: str, *, enabled: bool) -> int:
    home = codex_home(os.environ)
    plugin_id = _find(home, name)
    found = installed_plugin(home, plugin_id)
    if enabled and found is None:
        raise UsageError(f"the plugin `{plugin_id}` is not installed", hint="`codex-py plugin add` installs one")
    if enabled and found is not None:
        for line in view.content_lines(found, plugin_contents(found)):
            _print_note(line)
    switch_plugin(home / "config.toml", plugin_id, enabled=enabled)
    _print_note(
        f"{'enabled' if enabled else 'disabled'} the plugin `{plugin_id}`; this counts from the next session on"
    )
    return 0


def _known(home: Path) -> dict[str, bool]:
    """Every plugin that is configured or lies in the cache, by its id, sorted; and whether it is switched on."""
    loaded = load_config(ConfigRequest(home=home, cwd=Path.cwd(), env=os.environ))
    for warning in loaded.warnings:
        _print_note(f"warning: {warning}")
    plugins = loaded.config.plugins
    on_disk = {
        f"{directory.name}@{directory.parent.name}"
        for directory in (home / CACHE).glob("[!.]*/[!.]*")
        if directory.is_dir()
    }
    return {
        plugin_id: as_object(plugins.get(plugin_id)).get("enabled") is True
        for plugin_id in sorted({*plugins, *on_disk})
    }


def _find(home: Path, name: str) -> str:
    known = _known(home)
    found = [plugin_id for plugin_id in known if name in (plugin_id, plugin_id.partition("@")[0])]
    if len(found) == 1:
        return found[0]
    shown = ", ".join(f"`{plugin_id}`" for plugin_id in found or known)
    if found:
        raise UsageError(f"more than one plugin is called `{name}`", hint=f"give the whole name: {shown}")
    names = [*known, *(plugin_id.partition("@")[0] for plugin_id in known)]
    listed = f"there are {shown}" if shown else "`codex-py plugin add` installs one"
    raise UsageError(f"no plugin `{name}`", hint=did_you_mean(name, names) or listed)


def _plugin_view(home: Path, plugin_id: str, *, enabled: bool) -> view.PluginView:
    plugin = installed_plugin(home, plugin_id)
    change = plugin and change_in(home, plugin_id, plugin.root)
    return view.PluginView(plugin_id, enabled, plugin, plugin and plugin_contents(plugin), change)


def _print_note(text: str) -> None:
    print(sanitize_line(text), file=sys.stderr)

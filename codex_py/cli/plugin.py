"""`codex-py plugin`: lists, adds, removes and switches plugins, which bundle skills, MCP servers and hooks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer

from codex_py.cli.console import is_agreed, load_local_config, print_json, print_note, print_rows
from codex_py.cli.mcp_trust import describe_lines
from codex_py.cli.typer_command import Json, Yes, run_commands
from codex_py.config.edit import set_value
from codex_py.config.entries import remove_table
from codex_py.errors import UsageError, UserError
from codex_py.mcp.consent import describe_server
from codex_py.mcp.servers import read_server
from codex_py.paths import PLUGIN_CACHE, codex_home
from codex_py.plugins.manifests import Plugin, installed_plugin
from codex_py.plugins.record import change_in, record_plugin
from codex_py.plugins.servers import ROOT_NAMES
from codex_py.protocol.encoding import as_object
from codex_py.services.plugin_contents import PluginContents, plugin_contents
from codex_py.services.plugin_install import PluginRequest, install_staged, staged_plugin, uninstall_plugin
from codex_py.text.credentials import masked_url, masked_words
from codex_py.text.nearest import did_you_mean


class PluginView(NamedTuple):
    """A plugin of the configuration or on disk; one that is not on disk has only its id.

    `change` says what differs from the installed files.
    """

    id: str
    enabled: bool
    plugin: Plugin | None
    contents: PluginContents | None
    change: str | None = None


def print_plugins(plugins: Sequence[PluginView], *, as_json: bool) -> None:
    """Print all plugins, and how much each contains."""
    rows = (
        (
            view.id,
            view.plugin.version or view.plugin.root.name if view.plugin else "-",
            _status(view),
            *_counts(view.contents),
            str(view.plugin.root) if view.plugin else "-",
        )
        for view in plugins
    )
    head = ("PLUGIN", "VERSION", "STATUS", "SKILLS", "SERVERS", "HOOKS", "DIRECTORY")
    print_rows(head, rows, map(plugin_record, plugins), as_json=as_json)


def plugin_record(view: PluginView) -> dict[str, Any]:
    """A plugin as JSON, without the values of variables and headers."""
    plugin, contents = view.plugin, view.contents
    record: dict[str, Any] = {"id": view.id, "enabled": view.enabled, "installed": plugin is not None}
    if plugin is None or contents is None:
        return record
    servers = [read_server(name, entry) for name, entry in contents.servers.items()]
    return record | {
        "name": plugin.name,
        "version": plugin.version or None,
        "description": plugin.about or None,
        "path": str(plugin.root),
        "change": view.change,
        "skills": list(contents.skills),
        "mcp_servers": [
            {
                "name": server.name,
                "transport": server.transport,
                "command": None if server.url else [server.command or "", *masked_words(server.args)],
                "url": server.url and masked_url(server.url),
            }
            for server in servers
        ],
        "hooks": [view._asdict() for view in contents.hooks],
        "connectors": list(contents.connectors),
        "problems": list(contents.problems),
    }


def content_lines(plugin: Plugin, contents: PluginContents) -> Iterator[str]:
    """The contents of a plugin as lines, with every command that it would run."""
    own = tuple(f"{name}={plugin.root}" for name in ROOT_NAMES)
    version = f" {plugin.version}" if plugin.version else ""
    yield f"plugin `{plugin.id}`{version}" + (f": {' '.join(plugin.about.split())[:300]}" if plugin.about else "")
    if contents.skills:
        yield f"  skills: {', '.join(contents.skills)}"
    if contents.servers:
        yield "  MCP servers, which run outside the sandbox:"
        for name, entry in contents.servers.items():
            server = describe_server(read_server(name, entry))
            target = masked_url(server.target) if server.transport == "streamable_http" else server.target
            shown = server.replace(target=target, sets=tuple(value for value in server.sets if value not in own))
            # Without the path of the copy, which is moved when the plugin is installed.
            yield from (f"    {line}".replace(str(plugin.root), "${PLUGIN_ROOT}") for line in describe_lines(shown))
    if contents.hooks:
        yield "  hooks, commands that are run at moments of a turn:"
        for hook in contents.hooks:
            yield f"    {hook.event}{f' ({hook.matcher})' if hook.matcher else ''}: {hook.command}"
    if contents.connectors:
        yield f"  connectors: {', '.join(contents.connectors)}"
    if not (contents.skills or contents.servers or contents.hooks or contents.connectors):
        yield "  it brings nothing that is used here"
    for problem in contents.problems:
        yield f"  not used: {problem}"


def _counts(contents: PluginContents | None) -> tuple[str, str, str]:
    if contents is None:
        return "-", "-", "-"
    return str(len(contents.skills)), str(len(contents.servers)), str(len(contents.hooks))


def _status(view: PluginView) -> str:
    if view.plugin is None:
        return "not installed"
    return "changed" if view.change else "enabled" if view.enabled else "disabled"


_ABOUT: Final = "Plugins: bundles of skills, MCP servers and hooks. Nothing of one is run when it is added."

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
    print_plugins(shown, as_json=as_json)
    if not shown and not as_json:
        print_note("no plugins are installed; `codex-py plugin add` adds one")
    return 0


def add_plugin(
    source: Annotated[
        str, typer.Argument(metavar="DIRECTORY|URL[#REF]", help="A plugin's directory, or a git repository with it.")
    ],
    path: Annotated[str | None, typer.Option("--path", metavar="DIR", help="The plugin's directory in there.")] = None,
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
        print_note(*content_lines(staged.plugin, contents))
        needs = f"installing the plugin `{staged.plugin.id}`"
        if not is_agreed("install it?", yes=yes, needs=needs, otherwise="nothing was installed"):
            return 1
        added = install_staged(staged, home)
    try:
        set_value(home / "config.toml", ("plugins", added.id, "enabled"), True)
    except UserError:
        uninstall_plugin(home, added.id)
        raise
    if as_json:
        shown = PluginView(added.id, True, added, plugin_contents(added))
        print_json(plugin_record(shown))
    print_note(f"added the plugin `{added.id}`; sessions have it from now on")
    return 0


def remove_plugin(name: Name, as_json: Json = False) -> int:
    """Remove a plugin: its files, and its table in $CODEX_HOME/config.toml."""
    home = codex_home(os.environ)
    plugin_id = _find(home, name)
    # The table first: a plugin that is not enabled does not run, even if its files remain.
    remove_table(home / "config.toml", "plugins", plugin_id)
    uninstall_plugin(home, plugin_id)
    if as_json:
        print_json({"id": plugin_id, "removed": True})
    print_note(f"removed the plugin `{plugin_id}`")
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
    found = _installed(home, plugin_id)
    change = change_in(home, plugin_id, found.root)
    if change is None:
        print_note(f"the plugin `{plugin_id}` is as it was installed")
        return 0
    print_note(*content_lines(found, plugin_contents(found)), f"  changed: {change}")
    if not is_agreed("use it as it is now?", yes=yes, needs=f"accepting the plugin `{plugin_id}`"):
        return 1
    record_plugin(home, plugin_id, found.root)
    print_note(f"accepted the plugin `{plugin_id}` as it is now; sessions have it from now on")
    return 0


def _switch(name: str, *, enabled: bool) -> int:
    home = codex_home(os.environ)
    plugin_id = _find(home, name)
    if enabled:
        found = _installed(home, plugin_id)
        print_note(*content_lines(found, plugin_contents(found)))
    set_value(home / "config.toml", ("plugins", plugin_id, "enabled"), enabled)
    print_note(f"{'enabled' if enabled else 'disabled'} the plugin `{plugin_id}`; this counts from the next session on")
    return 0


def _known(home: Path) -> dict[str, bool]:
    """Every plugin that is configured or in the cache, sorted by id, and whether it is enabled."""
    plugins = load_local_config().loaded.config.plugins
    on_disk = {
        f"{directory.name}@{directory.parent.name}"
        for directory in (home / PLUGIN_CACHE).glob("[!.]*/[!.]*")
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


def _installed(home: Path, plugin_id: str) -> Plugin:
    found = installed_plugin(home, plugin_id)
    if found is None:
        raise UsageError(f"the plugin `{plugin_id}` is not installed", hint="`codex-py plugin add` installs one")
    return found


def _plugin_view(home: Path, plugin_id: str, *, enabled: bool) -> PluginView:
    plugin = installed_plugin(home, plugin_id)
    change = plugin and change_in(home, plugin_id, plugin.root)
    return PluginView(plugin_id, enabled, plugin, plugin and plugin_contents(plugin), change)

"""How `codex-py plugin` prints plugins: what one brings, tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TextIO

from codex_py.cli.mcp_trust import describe_lines
from codex_py.cli.tables import print_json, print_table
from codex_py.core.plugin_contents import PluginContents
from codex_py.core.project_servers import describe_server
from codex_py.mcp.servers import read_server
from codex_py.skills.plugin_servers import ROOT_NAMES
from codex_py.skills.plugins import Plugin
from codex_py.text.masked import masked_url, masked_words


class PluginView(NamedTuple):
    """A plugin of the configuration or on disk; without the latter there is nothing but its id.

    `change` says what is not as it was installed.
    """

    id: str
    enabled: bool
    plugin: Plugin | None
    contents: PluginContents | None
    change: str | None = None


def print_plugins(plugins: Sequence[PluginView], out: TextIO, *, as_json: bool) -> None:
    """All plugins, and how much each brings."""
    if as_json:
        print_json([plugin_record(view) for view in plugins], out)
        return
    rows = [
        (
            view.id,
            view.plugin.version or view.plugin.root.name if view.plugin else "-",
            _status(view),
            *_counts(view.contents),
            str(view.plugin.root) if view.plugin else "-",
        )
        for view in plugins
    ]
    print_table(("PLUGIN", "VERSION", "STATUS", "SKILLS", "SERVERS", "HOOKS", "FOLDER"), rows, out)


def plugin_record(view: PluginView) -> dict[str, Any]:
    """A plugin for programs; no value of a variable or a header is in it."""
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
    """What a plugin brings, line by line, with every command that it would run."""
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
            # Not where the copy lies now: it is moved when it is wanted.
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

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


class ShownPlugin(NamedTuple):
    """A plugin of the configuration or on disk; without the latter there is nothing but its id.

    `change` says what is not as it was installed.
    """

    id: str
    enabled: bool
    plugin: Plugin | None
    contents: PluginContents | None
    change: str | None = None


def print_plugins(plugins: Sequence[ShownPlugin], out: TextIO, *, as_json: bool) -> None:
    """All plugins, and how much each brings."""
    if as_json:
        print_json([plugin_record(one) for one in plugins], out)
        return
    rows = [
        (
            one.id,
            one.plugin.version or one.plugin.root.name if one.plugin else "-",
            _status(one),
            *_counts(one.contents),
            str(one.plugin.root) if one.plugin else "-",
        )
        for one in plugins
    ]
    print_table(("PLUGIN", "VERSION", "STATUS", "SKILLS", "SERVERS", "HOOKS", "FOLDER"), rows, out)


def plugin_record(one: ShownPlugin) -> dict[str, Any]:
    """A plugin for programs; no value of a variable or a header is in it."""
    plugin, contents = one.plugin, one.contents
    record: dict[str, Any] = {"id": one.id, "enabled": one.enabled, "installed": plugin is not None}
    if plugin is None or contents is None:
        return record
    servers = [read_server(name, entry) for name, entry in contents.servers.items()]
    return record | {
        "name": plugin.name,
        "version": plugin.version or None,
        "description": plugin.about or None,
        "path": str(plugin.root),
        "change": one.change,
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
        "hooks": [one._asdict() for one in contents.hooks],
        "connectors": list(contents.connectors),
        "problems": list(contents.problems),
    }


def brought_lines(plugin: Plugin, contents: PluginContents) -> Iterator[str]:
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
            shown = server.replace(target=target, sets=tuple(one for one in server.sets if one not in own))
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


def _status(one: ShownPlugin) -> str:
    if one.plugin is None:
        return "not installed"
    return "changed" if one.change else "enabled" if one.enabled else "disabled"

"""The MCP servers of a plugin, as tables of the configuration. Imported when a plugin is enabled.

They are read from `.mcp.json`, or from the manifest's `mcpServers`. A plugin decides what is started and with which
arguments and variables, but never that calls need no approval.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.plugins.manifests import Plugin, inside, read_json
from codex_py.protocol.encoding import as_list, as_object
from codex_py.text.address import is_web_address

Entry: TypeAlias = dict[str, Any]

# Stand for the plugin's directory, in what it writes and in its servers' environment.
ROOT_NAMES: Final = ("CLAUDE_PLUGIN_ROOT", "PLUGIN_ROOT")
_FILE: Final = ".mcp.json"
_MAX_SERVERS: Final = 32
_NAME: Final = re.compile(r"[A-Za-z0-9_:@/.-]{1,128}")
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]{0,127})\}")
_REMOTE: Final = frozenset({"http", "streamable_http", "streamable-http", "streamableHttp"})
_MODES: Final = ("auto", "prompt", "writes", "approve")
_SANDBOXES: Final = ("session", "network", "outside")
_PASSED_ON: Final = ("startup_timeout_sec", "tool_timeout_sec")


class PluginServers(NamedTuple):
    """Tables by the names of their servers, and a line for each server that cannot be used."""

    entries: dict[str, Entry]
    problems: tuple[str, ...] = ()


def plugin_servers(plugin: Plugin, settings: Mapping[str, Any] | None = None) -> PluginServers:
    """The servers of a plugin; `settings` is what the user's `[plugins."…".mcp_servers.NAME]` tables say of them.

    Of two with one name the first counts.
    """
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for name, table in _written(plugin, problems):
        if name in entries:
            continue
        if len(entries) == _MAX_SERVERS:
            problems.append(f"plugin `{plugin.id}` has more than {_MAX_SERVERS} MCP servers: the rest is left out")
            break
        own = as_object((settings or {}).get(name))
        read = _entry(plugin, table) if _NAME.fullmatch(name) else "the name is invalid"
        if own.get("sandbox", "outside") not in _SANDBOXES:
            read = "its `sandbox` is none of `session`, `network`, `outside`"
        if isinstance(read, str):
            problems.append(f"plugin `{plugin.id}`: its MCP server `{name[:128]}` is left out: {read}")
        else:
            entries[name] = {**read, **_own_settings(own)}
    return PluginServers(entries, tuple(problems))


def _written(plugin: Plugin, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every server that is written down, in the order of the files."""
    named: object = plugin.manifest.get("mcpServers", plugin.manifest.get("mcp_servers"))
    for source in [_FILE] if named is None else as_list(named) or [named]:
        found: dict[str, Any] | None
        if isinstance(source, str):
            path = inside(plugin.root, source)
            found = None if path is None else read_json(plugin.root, path)
            if found is None and (named is not None or os.path.lexists(plugin.root / _FILE)):
                problems.append(
                    f"plugin `{plugin.id}`: its MCP servers in `{source[:200]}` are left out: no JSON object of at most"
                    " 64 KiB inside the plugin"
                )
        else:
            found = as_object(source)
        # A file has the servers in `mcpServers`, or is the table of them itself.
        servers = (found or {}).get("mcpServers", found)
        for name, table in as_object(servers).items():
            yield name, as_object(table)


def _entry(plugin: Plugin, table: Mapping[str, Any]) -> Entry | str:
    """The table of a server in the form of our configuration, or what is wrong with it."""
    command, url, transport = table.get("command"), table.get("url"), table.get("type")
    if isinstance(command, str) and command and url is None:
        entry = _started(plugin, command, table)
    elif isinstance(url, str) and is_web_address(url) and command is None:
        if transport is not None and transport not in _REMOTE:
            return "its transport is none of `stdio`, `http`"
        entry = _connected(url, table)
    else:
        return "it has neither one `command` nor one `url`"
    if isinstance(entry, str):
        return entry
    for key in _PASSED_ON:
        value = table.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 3600:
            entry[key] = float(value)
    return entry


def _started(plugin: Plugin, command: str, table: Mapping[str, Any]) -> Entry | str:
    root = plugin.root

    def filled(text: str) -> str:
        return _VARIABLE.sub(lambda found: str(root) if found[1] in ROOT_NAMES else found[0], text)

    words = [filled(word) for word in as_list(table.get("args")) if isinstance(word, str)]
    env = {name: value for name, value in as_object(table.get("env")).items() if isinstance(value, str) and name}
    passed = [name for name, value in env.items() if value == f"${{{name}}}"]
    passed += [name for name in as_list(table.get("env_vars")) if isinstance(name, str)]
    cwd = table.get("cwd")
    directory = inside(root, filled(cwd)) if isinstance(cwd, str) else None
    program: object = filled(command)
    if command.startswith(("./", "../")):
        program = inside(directory or root, command)
        if program is None or not program.is_relative_to(root):
            return "its command leads out of the plugin"
    if any("\0" in word for word in (str(program), *words, *env, *env.values())):
        return "its command line has a zero byte"
    entry: Entry = {"command": str(program), "args": words}
    entry["env"] = dict.fromkeys(ROOT_NAMES, str(root)) | {
        name: filled(value) for name, value in env.items() if name not in passed
    }
    if passed:
        entry["env_vars"] = list(dict.fromkeys(passed))
    if isinstance(cwd, str):
        if directory is None:
            return "its `cwd` leads out of the plugin"
        entry["cwd"] = directory
    return entry


def _connected(url: str, table: Mapping[str, Any]) -> Entry:
    """Headers that stand for a variable of the user's environment become that variable."""
    entry: Entry = {"url": url}
    written = as_object(table.get("headers", table.get("http_headers")))
    fixed: dict[str, str] = {}
    for name, value in written.items():
        if not isinstance(value, str):
            continue
        scheme, _, rest = value.partition(" ")
        if whole := _VARIABLE.fullmatch(value):
            entry.setdefault("env_http_headers", {})[name] = whole[1]
        elif name.lower() == "authorization" and scheme == "Bearer" and (token := _VARIABLE.fullmatch(rest)):
            entry["bearer_token_env_var"] = token[1]
        else:
            fixed[name] = value
    if fixed:
        entry["http_headers"] = fixed
    if isinstance(bearer := table.get("bearer_token_env_var"), str) and bearer:
        entry["bearer_token_env_var"] = bearer
    return entry


def _own_settings(settings: Mapping[str, Any]) -> Entry:
    """What the user may say of a plugin's server without repeating it: what is used, and what is asked about."""
    entry: Entry = {"trust_annotations": False}
    for key in ("enabled", "trust_annotations", "allow_insecure_http"):
        if isinstance(settings.get(key), bool):
            entry[key] = settings[key]
    for key in ("enabled_tools", "disabled_tools"):
        if isinstance(settings.get(key), list | tuple):
            entry[key] = tuple(rules for rules in settings[key] if isinstance(rules, str))
    if (mode := settings.get("default_tools_approval_mode")) in _MODES:
        entry["default_tools_approval_mode"] = mode
    if "sandbox" in settings:
        entry["sandbox"] = settings["sandbox"]
    tools = {
        tool: {key: value for key, value in as_object(rules).items() if _is_tool_setting(key, value)}
        for tool, rules in as_object(settings.get("tools")).items()
    }
    return entry | ({"tools": tools} if tools else {})


def _is_tool_setting(key: str, value: object) -> bool:
    return (key == "approval_mode" and value in _MODES) or (key == "approved_hash" and isinstance(value, str))

"""Every MCP server by its source: the user, the trusted project, plugins, a front end; and the trust in a project's.

The user's own servers take precedence over the project's, and those over plugins'.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.config.edit import set_value
from codex_py.config.load import LoadedConfig
from codex_py.config.mcp_sections import mcp_server_problem
from codex_py.config.trust import real_path
from codex_py.core.session_request import SessionRequest
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.errors import CodexError
from codex_py.mcp.host import CommandLimits, McpFailed
from codex_py.mcp.servers import McpServer, ServerSandbox, read_server
from codex_py.plugins.manifests import checked_plugins, held_plugin_line, installed_plugin
from codex_py.plugins.record import change_in
from codex_py.plugins.servers import plugin_servers
from codex_py.process.named_files import named_contents, named_files, named_links
from codex_py.programs import ProbeResults
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.encoding import as_object
from codex_py.protocol.value import Value
from codex_py.skills.dependencies import mcp_keys
from codex_py.text.sanitize import sanitize_line

# A checked `[mcp_servers.NAME]` table.
Entry: TypeAlias = Mapping[str, Any]

Origin: TypeAlias = Literal["user", "project", "plugin", "front end"]
Standing: TypeAlias = Literal["trusted", "changed", "unknown", "refused"]

# What the user has said beside a plain yes, written before the pin that it holds for: `network,approve:PIN`.
TrustWord: TypeAlias = Literal["no", "network", "outside", "approve"]

TRUST_WORDS: Final[tuple[TrustWord, ...]] = ("no", "network", "outside", "approve")
_USERS_WORD: Final = ("sampling", "trust_annotations", "allow_insecure_http")


class ListedServer(NamedTuple):
    """A server, its table, and where it comes from; `plugin` is the id of its plugin.

    `standing` is the user's decision about a project's server as pinned by `pin`; `words` are the conditions of an
    approval.
    """

    name: str
    entry: Entry
    origin: Origin = "user"
    plugin: str | None = None
    standing: Standing = "trusted"
    pin: str = ""
    words: tuple[TrustWord, ...] = ()

    @property
    def sandbox(self) -> ServerSandbox:
        """Where it runs: a project's server in the sandbox, others outside unless their table says otherwise."""
        return self.server().sandbox

    @property
    def is_enabled(self) -> bool:
        return self.entry.get("enabled", True) is not False

    def server(self) -> McpServer:
        """The server as it is started."""
        server = read_server(self.name, self.entry)
        match self.origin:
            case "user":
                return server
            case "plugin":
                plugin = self.plugin or ""
                return server.replace(plugin=plugin, key=("plugins", plugin, "mcp_servers", self.name))
            case "project":
                return server.replace(pin=self.pin, sandbox=sandbox_of(server, self.words), key=())
            case "front end":
                return server.replace(key=())


class ServerListing(NamedTuple):
    """All servers, those of the user first; `problems` are lines about those that cannot be used."""

    servers: tuple[ListedServer, ...]
    problems: tuple[str, ...]


def known_servers(loaded: LoadedConfig, home: Path, cwd: Path) -> ServerListing:
    """Look at the configuration, at that of the project round `cwd`, and at the plugins that are switched on."""
    found = {name: ListedServer(name, dict(entry)) for name, entry in loaded.config.mcp_servers.items()}
    problems: list[str] = []
    for server in (*_of_project(loaded, cwd, problems), *_of_plugins(loaded, home, problems)):
        if server.name not in found:
            found[server.name] = server
        elif server.plugin is not None:
            other = found[server.name].plugin or f"the {found[server.name].origin}'s configuration"
            problems.append(
                f"the MCP server `{server.name}` of plugin `{server.plugin}` is left out: {other} has that name"
            )
    return ServerListing(tuple(found.values()), tuple(problems))


class ServerTable(Value):
    """The servers of a session, sorted by name, and the project's that wait for the user's decision.

    `names` are those in use, `skill_keys` what skills may know the servers by.
    """

    servers: tuple[McpServer, ...] = ()
    waiting: tuple[ListedServer, ...] = ()
    names: frozenset[str] = frozenset()
    skill_keys: frozenset[str] = frozenset()
    notices: tuple[str, ...] = ()


def session_servers(request: SessionRequest) -> ServerTable:
    """The servers that a session begins with. One of a front end stands in for a configured one of its name."""
    listing = known_servers(request.loaded, request.home, request.cwd)
    added = {name: ListedServer(name, entry, "front end") for name, entry in request.more_servers.items()}
    found = {server.name: server for server in listing.servers} | added
    trusted = [found[name] for name in sorted(found) if found[name].standing == "trusted"]
    undecided = ("unknown", "changed")
    waiting = tuple(server for server in found.values() if server.is_enabled and server.standing in undecided)
    return ServerTable(
        servers=tuple(server.server() for server in trusted if server.is_enabled),
        waiting=waiting if request.can_ask else (),
        names=frozenset(found),
        skill_keys=frozenset(key for server in trusted for key in mcp_keys(server.name, server.entry)),
        notices=(*map(sanitize_line, listing.problems), *([] if request.can_ask else _not_started(waiting))),
    )


def _not_started(waiting: Sequence[ListedServer]) -> Iterator[str]:
    if waiting:
        shown = ", ".join(f"`{sanitize_line(server.name)}`" for server in waiting)
        what, verb = ("servers", "are") if len(waiting) > 1 else ("server", "is")
        yield (
            f"the project's MCP {what} {shown} {verb} not started: you have not agreed to what would run"
            " (`codex-py mcp trust NAME` shows it, and asks)"
        )


def trust_server(home: Path, project: Path, name: str, pin: str, *, words: Sequence[TrustWord] = ()) -> Path:
    """Store the approval of a project's server as pinned by `pin`, with `words`. Returns the file.

    Raises `UserError` when it cannot be written.
    """
    file = home / "config.toml"
    value = f"{','.join(words)}:{pin}" if words else pin
    set_value(file, ("projects", str(project), "trusted_mcp_servers", name), value)
    return file


def sandbox_of(server: McpServer, words: Sequence[TrustWord]) -> ServerSandbox:
    """Where a project's server runs when the user has agreed to it with these words."""
    if server.url is not None or "outside" in words:
        return "outside"
    return "network" if "network" in words else "session"


def project_of(loaded: LoadedConfig, cwd: Path) -> Path:
    """The directory under which the user's word to a project's servers is kept."""
    return loaded.project_root or real_path(cwd)


def _of_project(loaded: LoadedConfig, cwd: Path, problems: list[str]) -> Iterator[ListedServer]:
    known = loaded.config.projects.get(str(project_of(loaded, cwd)))
    pins: Mapping[str, str] = known.trusted_mcp_servers if known is not None else {}
    for name, written in sorted(loaded.project_mcp_servers.items()):
        if (problem := mcp_server_problem(written)) is not None:
            problems.append(f"the project's MCP server `{name}` is left out: {problem}")
            continue
        entry = _tightened(written)
        pin = server_pin(read_server(name, entry), project_of(loaded, cwd), cwd)
        standing, words = _standing(pins.get(name), pin)
        if "approve" in words:
            entry = {**entry, "default_tools_approval_mode": "approve"}
        yield ListedServer(name, entry, "project", standing=standing, pin=pin, words=words)


def _of_plugins(loaded: LoadedConfig, home: Path, problems: list[str]) -> Iterator[ListedServer]:
    plugins = loaded.config.plugins
    for plugin, change in checked_plugins(home, plugins):
        if change is not None:
            problems.append(held_plugin_line(plugin, change))
            continue
        read = plugin_servers(plugin, as_object(as_object(plugins.get(plugin.id)).get("mcp_servers")))
        problems += read.problems
        for name, entry in read.entries.items():
            yield ListedServer(name, entry, "plugin", plugin.id)


def _tightened(written: Mapping[str, Any]) -> Entry:
    """A project's table without the keys that only the user may set, such as trusted annotations or sampling."""
    entry = {key: value for key, value in written.items() if key not in _USERS_WORD}
    entry["trust_annotations"] = False
    if entry.get("default_tools_approval_mode") == "approve":
        del entry["default_tools_approval_mode"]
    tools = as_object(entry.pop("tools", None))
    modes = {tool: as_object(tool_table).get("approval_mode") for tool, tool_table in tools.items()}
    stricter = {tool: {"approval_mode": mode} for tool, mode in modes.items() if mode not in (None, "approve")}
    return entry | ({"tools": stricter} if stricter else {})


def server_pin(server: McpServer, project: Path, cwd: Path) -> str:
    """A hash of what a project's server would run or connect to now, and of the files that its command line names."""
    files = named_contents(server.argv, project, server.cwd or cwd)
    return hashlib.sha256(server.fingerprint.encode() + files).hexdigest() if files else server.fingerprint


def change_of(server: McpServer, loaded: LoadedConfig, *, home: Path, cwd: Path) -> str | None:
    """Describe how a project's or a plugin's server has changed since it was approved; None if it has not."""
    if server.plugin:
        plugin = installed_plugin(home, server.plugin)
        if plugin is None:
            return f"the plugin `{server.plugin}` is gone"
        change = change_in(home, plugin.id, plugin.root)
        return held_plugin_line(plugin, change) if change is not None else None
    if server_pin(server, project_of(loaded, cwd), cwd) == server.pin:
        return None
    return (
        "it, or a file that its command line names, has changed since you agreed to it"
        f" (`codex-py mcp trust {sanitize_line(server.name)}` shows it, and asks)"
    )


def _standing(written: str | None, pin: str) -> tuple[Standing, tuple[TrustWord, ...]]:
    """The user's decision about a server that now has this `pin`, and the words that widen it."""
    if written is None:
        return "unknown", ()
    before, _, trusted_pin = written.rpartition(":")
    names = before.split(",") if before else []
    words: list[TrustWord] = [word for word in TRUST_WORDS if word in names]
    if trusted_pin != pin or len(words) != len(names):
        return "changed", ()
    return ("refused", ()) if "no" in words else ("trusted", tuple(words))


def server_sandbox(
    loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str], known: ProbeResults
) -> Callable[[McpServer, PreparedCommand, CommandLimits], PreparedCommand]:
    """The function that puts a server of the project around `cwd` into the sandbox, probed on first use."""
    sandbox = ProgramSandbox(loaded, home=home, env=env, known=known)

    def confine(server: McpServer, start: PreparedCommand, limits: CommandLimits) -> PreparedCommand:
        try:
            if server.sandbox == "outside":
                _check_outside(server, project_of(loaded, cwd), cwd, partial(sandbox.may_write, **limits._asdict()))
                return start
            return sandbox.wrap(start, policy=limits.policy, cwd=limits.cwd, network=server.sandbox == "network")
        except McpFailed:
            raise
        except CodexError as error:
            way = f"`codex-py mcp trust {sanitize_line(server.name)} --outside`"
            if server.plugin:
                way = '`sandbox = "outside"` in its table'
            raise McpFailed(f"{error}; {way} lets it run without a sandbox") from error

    return confine


def _check_outside(server: McpServer, project: Path, cwd: Path, may_write: Callable[[Path], bool]) -> None:
    """Raise `McpFailed` where a command could exchange what a project's server names, once it has been compared."""
    words = server.argv if server.pin else ()
    start = server.cwd or cwd
    named = [path for path in named_files(words, (project,), start) if path.is_relative_to(project)]
    named += [link for link, _ in named_links(words, (project,), start)]
    if written := sorted(filter(may_write, named)):
        raise McpFailed(
            f"is not started outside the sandbox: commands may write `{sanitize_line(str(written[0]))}`, which it "
            f"names; keep that in `.codex`, or run `codex-py mcp trust {sanitize_line(server.name)}` without "
            "`--outside`"
        )

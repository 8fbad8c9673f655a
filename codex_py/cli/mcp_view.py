"""How `codex-py mcp` prints servers: tables for people, JSON in the fields of Codex CLI; secrets in neither."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TextIO, cast

from codex_py.cli.tables import print_json, print_table
from codex_py.core.mcp_trial import Trial
from codex_py.core.server_table import ListedServer
from codex_py.mcp.catalog import Catalog
from codex_py.mcp.logins import AuthStatus
from codex_py.mcp.servers import McpServer
from codex_py.text.masked import MASK, masked_url, masked_words
from codex_py.text.sanitize import sanitize_line

_NONE: Final = "-"
_SANDBOXES: Final = {
    "session": "in the sandbox",
    "network": "in the sandbox with network",
    "outside": "outside the sandbox",
}
_AUTH: Final = {
    "unsupported": "Unsupported",
    "bearer_token": "Bearer token",
    "o_auth": "OAuth",
    "not_logged_in": "Not logged in",
}


class ShownServer(NamedTuple):
    """A server as it is listed: what is configured and where, whether it is enabled, and how it is authorized."""

    server: McpServer
    listed: ListedServer
    auth: AuthStatus

    @property
    def entry(self) -> Mapping[str, Any]:
        return self.listed.entry

    @property
    def enabled(self) -> bool:
        return self.entry.get("enabled", True) is not False


def print_servers(servers: Sequence[ShownServer], out: TextIO, *, as_json: bool) -> None:
    """All servers, those with a command first."""
    if as_json:
        print_json([_listed(one) for one in servers], out)
        return
    local = [one for one in servers if one.server.url is None]
    remote = [one for one in servers if one.server.url is not None]
    rows = [
        (
            one.server.name,
            one.server.command or "",
            " ".join(masked_words(one.server.args)) or _NONE,
            masked(one.server.env) or _NONE,
            str(one.server.cwd or _NONE),
            _status(one),
            _AUTH[one.auth],
        )
        for one in local
    ]
    print_table(("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"), rows, out)
    if local and remote:
        out.write("\n")
    rows = [
        (
            one.server.name,
            masked_url(one.server.url or ""),
            one.server.bearer_token_env_var or _NONE,
            _status(one),
            _AUTH[one.auth],
        )
        for one in remote
    ]
    print_table(("Name", "Url", "Bearer Token Env Var", "Status", "Auth"), rows, out)


def print_server(one: ShownServer, out: TextIO, *, as_json: bool) -> None:
    """Everything about one server."""
    if as_json:
        tools = {name: _list(one.entry.get(name)) for name in ("enabled_tools", "disabled_tools")}
        print_json({**_listed(one), **tools}, out)
        return
    server = one.server
    out.write(f"{sanitize_line(server.name)}\n")
    facts: dict[str, Any] = {"enabled": str(one.enabled).lower(), "from": one.listed.plugin or one.listed.origin}
    if one.listed.origin == "project":
        facts["trusted"] = str(one.listed.standing == "trusted").lower()
        if server.url is None and one.listed.standing == "trusted":
            facts["sandbox"] = _SANDBOXES[one.listed.sandbox]
    facts["transport"] = server.transport
    if server.url is None:
        facts |= {"command": server.command, "args": " ".join(masked_words(server.args))}
        facts |= {"cwd": server.cwd, "env": masked(server.env), "env_vars": " ".join(server.env_vars)}
    else:
        facts |= {"url": masked_url(server.url), "bearer_token_env_var": server.bearer_token_env_var}
        facts |= {"http_headers": masked(server.http_headers), "env_http_headers": _pairs(server.env_http_headers)}
    for key in ("enabled_tools", "disabled_tools", "scopes", "required", "startup_timeout_sec", "tool_timeout_sec"):
        if key in one.entry:
            value = one.entry[key]
            facts[key] = ", ".join(map(str, cast("Sequence[str]", value))) if isinstance(value, tuple) else value
    facts |= {"auth": _AUTH[one.auth], **_what_next(one)}
    for name, value in facts.items():
        out.write(f"  {name}: {sanitize_line(str(value if value not in (None, '') else _NONE))}\n")


def print_trial(trial: Trial, out: TextIO, *, as_json: bool) -> None:
    """What a started server offers, or why there is nothing."""
    catalog = trial.catalog or Catalog()
    if as_json:
        print_json(
            {
                "name": trial.name,
                "ok": trial.error is None,
                "seconds": round(trial.seconds, 3),
                "error": trial.error,
                "stderr": list(trial.stderr),
                "tools": [_tool(tool._asdict()) for tool in catalog.tools],
                "prompts": [prompt.name for prompt in catalog.prompts],
            },
            out,
        )
        return
    if trial.error is None:
        tools = f"{len(catalog.tools)} tool{'' if len(catalog.tools) == 1 else 's'}"
        out.write(f"{sanitize_line(trial.name)}: up after {trial.seconds:.1f} s, {tools}\n")
    rows = [(tool.name, _hints(tool.read_only, tool.destructive), _first(tool.description)) for tool in catalog.tools]
    print_table(("TOOL", "DOES", "DESCRIPTION"), rows, out)
    if catalog.prompts:
        out.write(f"prompts: {sanitize_line(', '.join(prompt.name for prompt in catalog.prompts))}\n")


def masked(values: Mapping[str, str]) -> str:
    """Names without their values."""
    return ", ".join(f"{name}={MASK}" for name in values)


def _listed(one: ShownServer) -> dict[str, Any]:
    server = one.server
    if server.url is None:
        transport: dict[str, Any] = {
            "type": "stdio",
            "command": server.command,
            "args": masked_words(server.args),
            "env": {name: MASK for name in server.env} or None,
            "env_vars": list(server.env_vars),
            "cwd": None if server.cwd is None else str(server.cwd),
        }
    else:
        transport = {
            "type": "streamable_http",
            "url": masked_url(server.url),
            "bearer_token_env_var": server.bearer_token_env_var,
            "http_headers": {name: MASK for name in server.http_headers} or None,
            "env_http_headers": dict(server.env_http_headers) or None,
        }
    return {
        "name": server.name,
        "enabled": one.enabled,
        "disabled_reason": None if one.listed.standing == "trusted" else "not trusted",
        "transport": transport,
        "startup_timeout_sec": one.entry.get("startup_timeout_sec"),
        "tool_timeout_sec": one.entry.get("tool_timeout_sec"),
        "auth_status": one.auth,
        "origin": one.listed.origin,
        "plugin": one.listed.plugin,
        "sandbox": None if server.url is not None else one.listed.sandbox,
    }


def _tool(fields: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "description", "read_only", "destructive", "open_world")
    more = {"connector": fields["connector_id"], "parameters": fields["schema"]}
    return {name: fields[name] for name in kept} | more


def _hints(read_only: bool | None, destructive: bool | None) -> str:
    if read_only:
        return "reads"
    return {None: "says nothing", True: "may destroy", False: "changes"}[destructive]


def _first(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 100 else f"{line[:99]}…"


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _list(value: Sequence[str] | None) -> list[str] | None:
    return None if value is None else list(value)


def _what_next(one: ShownServer) -> dict[str, str]:
    listed, name = one.listed, one.server.name
    if listed.plugin is not None:
        return {"remove": f"codex-py plugin remove {listed.plugin}"}
    if listed.origin == "project":
        return {} if listed.standing == "trusted" else {"trust": f"codex-py mcp trust {name}"}
    return {"remove": f"codex-py mcp remove {name}"}


def _status(one: ShownServer) -> str:
    if not one.enabled:
        return "disabled"
    if one.listed.standing != "trusted":
        return "not trusted"
    is_held = one.listed.origin == "project" and one.server.url is None
    return f"enabled, {_SANDBOXES[one.listed.sandbox]}" if is_held else "enabled"

"""The output of `codex-py mcp`: tables for people, JSON with the fields of Codex CLI, and no secrets in either."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from codex_py.cli.console import print_json, print_table
from codex_py.mcp.catalog import Catalog
from codex_py.mcp.host import AuthStatus
from codex_py.mcp.login import McpCheck
from codex_py.mcp.servers import McpServer
from codex_py.mcp.table import ListedServer
from codex_py.text.credentials import MASK, masked_url, masked_words
from codex_py.text.display import counted
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


class ServerView(NamedTuple):
    """A listed server: what is configured and where, whether it is enabled, and how it is authorized."""

    server: McpServer
    listed: ListedServer
    auth: AuthStatus

    @property
    def enabled(self) -> bool:
        return self.listed.entry.get("enabled", True) is not False


def print_servers(servers: Sequence[ServerView], *, as_json: bool) -> None:
    """Print all servers, those with a command first."""
    if as_json:
        print_json([_listed(view) for view in servers])
        return
    local = [view for view in servers if view.server.url is None]
    remote = [view for view in servers if view.server.url is not None]
    rows = [
        (
            view.server.name,
            view.server.command or "",
            " ".join(masked_words(view.server.args)) or _NONE,
            masked(view.server.env) or _NONE,
            str(view.server.cwd or _NONE),
            _status(view),
            _AUTH[view.auth],
        )
        for view in local
    ]
    print_table(("Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"), rows)
    if local and remote:
        print()
    rows = [
        (
            view.server.name,
            masked_url(view.server.url or ""),
            view.server.bearer_token_env_var or _NONE,
            _status(view),
            _AUTH[view.auth],
        )
        for view in remote
    ]
    print_table(("Name", "Url", "Bearer Token Env Var", "Status", "Auth"), rows)


def print_server(view: ServerView, *, as_json: bool) -> None:
    """Print everything about one server."""
    if as_json:
        tools = {name: view.listed.entry.get(name) for name in ("enabled_tools", "disabled_tools")}
        print_json({**_listed(view), **tools})
        return
    server = view.server
    print(sanitize_line(server.name))
    facts: dict[str, Any] = {"enabled": str(view.enabled).lower(), "from": view.listed.plugin or view.listed.origin}
    if view.listed.origin == "project":
        facts["trusted"] = str(view.listed.standing == "trusted").lower()
        if server.url is None and view.listed.standing == "trusted":
            facts["sandbox"] = _SANDBOXES[view.listed.sandbox]
    facts["transport"] = server.transport
    if server.url is None:
        facts |= {"command": server.command, "args": " ".join(masked_words(server.args))}
        facts |= {"cwd": server.cwd, "env": masked(server.env), "env_vars": " ".join(server.env_vars)}
    else:
        facts |= {"url": masked_url(server.url), "bearer_token_env_var": server.bearer_token_env_var}
        facts |= {"http_headers": masked(server.http_headers), "env_http_headers": _pairs(server.env_http_headers)}
    for key in ("enabled_tools", "disabled_tools", "scopes", "required", "startup_timeout_sec", "tool_timeout_sec"):
        if key in view.listed.entry:
            value = view.listed.entry[key]
            facts[key] = ", ".join(map(str, cast("Sequence[str]", value))) if isinstance(value, tuple) else value
    facts |= {"auth": _AUTH[view.auth], **_next_steps(view)}
    for name, value in facts.items():
        print(f"  {name}: {sanitize_line(str(value if value not in (None, '') else _NONE))}")


def print_check(check: McpCheck, *, as_json: bool) -> None:
    """Print what a started server offers, or why it did not start."""
    catalog = check.catalog or Catalog()
    if as_json:
        print_json(
            {
                "name": check.name,
                "ok": check.error is None,
                "seconds": round(check.seconds, 3),
                "error": check.error,
                "stderr": list(check.stderr),
                "tools": [_tool(tool._asdict()) for tool in catalog.tools],
                "prompts": [prompt.name for prompt in catalog.prompts],
            },
        )
        return
    if check.error is None:
        tools = counted(len(catalog.tools), "tool")
        print(f"{sanitize_line(check.name)}: up after {check.seconds:.1f} s, {tools}")
    rows = [(tool.name, _hints(tool.read_only, tool.destructive), _first(tool.description)) for tool in catalog.tools]
    print_table(("TOOL", "DOES", "DESCRIPTION"), rows)
    if catalog.prompts:
        print(f"prompts: {sanitize_line(', '.join(prompt.name for prompt in catalog.prompts))}")


def masked(values: Mapping[str, str]) -> str:
    """Names without their values."""
    return ", ".join(f"{name}={MASK}" for name in values)


def _listed(view: ServerView) -> dict[str, Any]:
    server = view.server
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
        "enabled": view.enabled,
        "disabled_reason": None if view.listed.standing == "trusted" else "not trusted",
        "transport": transport,
        "startup_timeout_sec": view.listed.entry.get("startup_timeout_sec"),
        "tool_timeout_sec": view.listed.entry.get("tool_timeout_sec"),
        "auth_status": view.auth,
        "origin": view.listed.origin,
        "plugin": view.listed.plugin,
        "sandbox": None if server.url is not None else view.listed.sandbox,
    }


def _tool(fields: dict[str, Any]) -> dict[str, Any]:
    keys = ("name", "description", "read_only", "destructive", "open_world")
    more = {"connector": fields["connector_id"], "parameters": fields["schema"]}
    return {name: fields[name] for name in keys} | more


def _hints(read_only: bool | None, destructive: bool | None) -> str:
    if read_only:
        return "reads"
    return {None: "says nothing", True: "may destroy", False: "changes"}[destructive]


def _first(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= 100 else f"{line[:99]}…"


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _next_steps(view: ServerView) -> dict[str, str]:
    listed, name = view.listed, view.server.name
    if listed.plugin is not None:
        return {"remove": f"codex-py plugin remove {listed.plugin}"}
    if listed.origin == "project":
        return {} if listed.standing == "trusted" else {"trust": f"codex-py mcp trust {name}"}
    return {"remove": f"codex-py mcp remove {name}"}


def _status(view: ServerView) -> str:
    if not view.enabled:
        return "disabled"
    if view.listed.standing != "trusted":
        return "not trusted"
    is_sandboxed = view.listed.origin == "project" and view.server.url is None
    return f"enabled, {_SANDBOXES[view.listed.sandbox]}" if is_sandboxed else "enabled"

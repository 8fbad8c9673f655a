"""The tables about MCP servers and the connectors they offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from codex_py.config.value_types import (
    AnyTable,
    FilePath,
    Flag,
    Integer,
    ListOf,
    MapOf,
    Seconds,
    Shape,
    Text,
    Url,
    WordChoice,
)

# Ask: by the tool's own annotations, always, unless a tool only reads, never.
TOOL_APPROVAL = WordChoice("auto", "prompt", "writes", "approve")

MCP_SERVER = Shape(
    {
        "command": Text(),
        "args": ListOf(Text(lines=True)),
        "env": MapOf(Text(lines=True, secret=True)),
        "env_vars": ListOf(Text()),
        "cwd": FilePath(),
        "url": Url(),
        "bearer_token_env_var": Text(),
        "http_headers": MapOf(Text(secret=True)),
        "env_http_headers": MapOf(Text()),
        "startup_timeout_sec": Seconds(),
        "tool_timeout_sec": Seconds(),
        "enabled": Flag(),
        "required": Flag(),
        "enabled_tools": ListOf(Text()),
        "disabled_tools": ListOf(Text()),
        "scopes": ListOf(Text()),
        "oauth_client_id": Text(),
        "oauth_client_secret_env_var": Text(),
        "startup_timeout_ms": Integer(1),
        "sampling": Flag(),
        "supports_parallel_tool_calls": Flag(),
        "default_tools_approval_mode": TOOL_APPROVAL,
        "tools": MapOf(Shape({"approval_mode": TOOL_APPROVAL, "approved_hash": Text()})),
        "trust_annotations": Flag(),
        "allow_insecure_http": Flag(),
    }
)

# Keys that only apply to a server that this program starts, and only to a remote one.
_LOCAL: Final = ("args", "env", "env_vars", "cwd")
_REMOTE: Final = (
    *("bearer_token_env_var", "http_headers", "env_http_headers"),
    *("oauth_client_id", "oauth_client_secret_env_var", "allow_insecure_http"),
)


def mcp_server_problem(server: Mapping[str, Any]) -> str | None:
    """Why a checked `[mcp_servers.NAME]` table describes no server; None when it does."""
    if ("command" in server) == ("url" in server):
        if "url" in server:
            return "it has both `command` and `url`; remove one"
        return "set `command` to the program that starts it, or `url` to its address"
    odd = [key for key in (_LOCAL if "url" in server else _REMOTE) if key in server]
    if odd:
        return f"`{odd[0]}` only goes with `{'command' if 'url' in server else 'url'}`; remove it"
    return None


# A server this program starts, and one that runs elsewhere; between them they have every key.
MCP_SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "local": {
        "command": "example-server",
        "args": ["--stdio"],
        "env": {"LEVEL": "info"},
        "env_vars": ["EXAMPLE_TOKEN"],
        "cwd": "~/servers",
        "startup_timeout_sec": 10.0,
        "tool_timeout_sec": 60.0,
        "enabled": True,
        "required": False,
        "enabled_tools": ["search"],
        "disabled_tools": ["delete"],
        "default_tools_approval_mode": "auto",
        "tools": {"search": {"approval_mode": "approve"}},
        "supports_parallel_tool_calls": False,
        "sampling": False,
        "trust_annotations": True,
    },
    "remote": {
        "url": "https://mcp.example.com/mcp",
        "bearer_token_env_var": "EXAMPLE_TOKEN",
        "http_headers": {"x-team": "core"},
        "env_http_headers": {"x-org": "ORG_ID"},
        "scopes": ["read"],
        "oauth_client_id": "registered-there",
        "oauth_client_secret_env_var": "EXAMPLE_SECRET",
        "startup_timeout_ms": 10000,
        "allow_insecure_http": False,
    },
}


APP = Shape(
    {
        "enabled": Flag(),
        "name": Text(),
        "server": Text(),
        "server_tools": ListOf(Text()),
        "default_tools_enabled": Flag(),
        "destructive_enabled": Flag(),
        "open_world_enabled": Flag(),
        "default_tools_approval_mode": TOOL_APPROVAL,
        "tools": MapOf(Shape({"enabled": Flag(), "approval_mode": TOOL_APPROVAL})),
        # Said by other programs, and of no meaning here.
        "approvals_reviewer": Text(),
        "links": AnyTable(),
        "omit_tools_from": ListOf(Text()),
    }
)

# What holds for every connector, and one that is made of some tools of a server.
APP_SAMPLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "_default": {
        "enabled": True,
        "default_tools_enabled": True,
        "destructive_enabled": True,
        "open_world_enabled": True,
        "default_tools_approval_mode": "auto",
    },
    "tracker": {
        "name": "Issue tracker",
        "server": "remote",
        "server_tools": ["search", "delete"],
        "tools": {"delete": {"enabled": False, "approval_mode": "prompt"}},
    },
}

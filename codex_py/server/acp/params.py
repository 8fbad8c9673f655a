"""The MCP servers that a client gives to a session, read as tables of our configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from codex_py.paths import is_directory
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_MAX_SERVERS: Final = 100
_SHOWN: Final = 80
_TRANSPORTS: Final = ("stdio", "http", "sse", "acp")
_TAKEN: Final = ("stdio", "http")


def directory_of(params: Params) -> Path:
    """The folder of a session, which clients name by its absolute path."""
    directory = params.directory("cwd")
    if directory is None:
        raise params.missing("cwd")
    if not params.text("cwd").startswith("/"):
        raise RpcError("invalid request: `cwd` is not an absolute path")
    return directory


def directories_of(params: Params) -> tuple[Path, ...]:
    """The other folders that a session may write to."""
    directories: list[Path] = []
    for text in params.texts("additionalDirectories") or ():
        real = Path(os.path.realpath(text))
        if not text.startswith("/") or not is_directory(real):
            raise RpcError(f"invalid request: `{text[:_SHOWN]}` is not the absolute path of a folder")
        directories.append(real)
    return tuple(directories)


def servers_of(params: Params) -> dict[str, dict[str, Any]]:
    """The servers by name. Raises `RpcError` for what is none, and for a kind that is not taken."""
    servers = params.nested_list("mcpServers") or []
    if len(servers) > _MAX_SERVERS:
        raise RpcError(f"invalid request: {len(servers)} entries in `mcpServers`, and {_MAX_SERVERS} are the most")
    return {server.text("name"): _table(server) for server in servers}


def _table(server: Params) -> dict[str, Any]:
    transport = server.choice("type", _TRANSPORTS) or "stdio"
    if transport not in _TAKEN:
        raise RpcError(f"invalid request: MCP servers of the type `{transport}` are not taken, only `stdio` and `http`")
    if transport == "http":
        url = server.text("url")
        if not url.lower().startswith(("http://", "https://")):
            raise RpcError("invalid request: the `url` of an MCP server is not an `http:` or `https:` address")
        return {"url": url, "http_headers": _pairs(server, "headers")}
    command = server.text("command")
    if not command:
        raise server.missing("command")
    return {"command": command, "args": server.texts("args") or (), "env": _pairs(server, "env")}


def _pairs(server: Params, name: str) -> dict[str, str]:
    return {pair.text("name"): pair.text("value") for pair in server.nested_list(name) or []}

"""The MCP servers that a client gives to a session, read as tables of our configuration."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from codex_py.paths import is_folder
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_MOST_SERVERS: Final = 100
_SHOWN: Final = 80
_KINDS: Final = ("stdio", "http", "sse", "acp")
_TAKEN: Final = ("stdio", "http")


def folder_of(params: Params) -> Path:
    """The folder of a session, which clients name by its absolute path."""
    folder = params.folder("cwd")
    if folder is None:
        raise params.missing("cwd")
    if not params.text("cwd").startswith("/"):
        raise RpcError("invalid request: `cwd` is not an absolute path")
    return folder


def folders_of(params: Params) -> tuple[Path, ...]:
    """The other folders that a session may write to."""
    folders: list[Path] = []
    for given in params.texts("additionalDirectories") or ():
        real = Path(os.path.realpath(given))
        if not given.startswith("/") or not is_folder(real):
            raise RpcError(f"invalid request: `{given[:_SHOWN]}` is not the absolute path of a folder")
        folders.append(real)
    return tuple(folders)


def servers_of(params: Params) -> dict[str, dict[str, Any]]:
    """The servers by name. Raises `RpcError` for what is none, and for a kind that is not taken."""
    given = params.parts("mcpServers") or []
    if len(given) > _MOST_SERVERS:
        raise RpcError(f"invalid request: {len(given)} entries in `mcpServers`, and {_MOST_SERVERS} are the most")
    return {one.text("name"): _table(one) for one in given}


def _table(server: Params) -> dict[str, Any]:
    kind = server.one_of("type", _KINDS) or "stdio"
    if kind not in _TAKEN:
        raise RpcError(f"invalid request: MCP servers of the type `{kind}` are not taken, only `stdio` and `http`")
    if kind == "http":
        url = server.text("url")
        if not url.lower().startswith(("http://", "https://")):
            raise RpcError("invalid request: the `url` of an MCP server is not an `http:` or `https:` address")
        return {"url": url, "http_headers": _pairs(server, "headers")}
    command = server.text("command")
    if not command:
        raise server.missing("command")
    return {"command": command, "args": server.texts("args") or (), "env": _pairs(server, "env")}


def _pairs(server: Params, name: str) -> dict[str, str]:
    return {one.text("name"): one.text("value") for one in server.parts(name) or []}

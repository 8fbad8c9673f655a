"""The `[mcp_servers.NAME]` tables of the user's `config.toml`: added, replaced and removed, comments kept."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, cast

from codex_py.config.edit import Document, edit_file
from codex_py.protocol.encoding import as_object


def put_mcp_server(file: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Have exactly this entry for a server. Raises `UserError` when the file cannot be read, edited or written."""

    def change(document: Document) -> bool:
        import tomlkit

        if "mcp_servers" not in document:
            document["mcp_servers"] = tomlkit.table(is_super_table=True)
        servers: object = document["mcp_servers"]
        if not isinstance(servers, MutableMapping):
            return False
        tables = cast("Document", servers)
        if name not in tables:
            tables[name] = tomlkit.table()
        own = cast("Document", tables[name])
        for key in [key for key in own if key not in entry]:
            del own[key]
        for key, value in entry.items():
            own[key] = value
        return True

    def wanted(tree: dict[str, Any]) -> dict[str, Any]:
        return {**tree, "mcp_servers": {**as_object(tree.get("mcp_servers")), name: dict(entry)}}

    edit_file(file, ("mcp_servers", name), change=change, wanted=wanted)


def remove_mcp_server(file: Path, name: str) -> bool:
    """Remove the entry of a server; False when the file has none. Raises `UserError` as `put_mcp_server`."""
    found = False

    def change(document: Document) -> bool:
        nonlocal found
        servers: object = document.get("mcp_servers")
        if isinstance(servers, MutableMapping) and name in cast("Document", servers):
            found = True
            del cast("Document", servers)[name]
        return True

    def wanted(tree: dict[str, Any]) -> dict[str, Any]:
        if "mcp_servers" not in tree:
            return tree
        left = {key: value for key, value in as_object(tree["mcp_servers"]).items() if key != name}
        return {**tree, "mcp_servers": left}

    edit_file(file, ("mcp_servers", name), change=change, wanted=wanted)
    return found

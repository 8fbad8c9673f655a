"""The `[mcp_servers.NAME]` tables of the user's `config.toml`, and their like: put, removed, comments kept."""

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
        from tomlkit.items import InlineTable

        if "mcp_servers" not in document:
            document["mcp_servers"] = tomlkit.table(is_super_table=True)
        servers: object = document["mcp_servers"]
        if not isinstance(servers, MutableMapping):
            return False
        tables = cast("Document", servers)
        if name not in tables:
            tables[name] = tomlkit.inline_table() if isinstance(tables, InlineTable) else tomlkit.table()
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
    return remove_table(file, "mcp_servers", name)


def remove_table(file: Path, family: str, name: str) -> bool:
    """Remove the table `[family.name]`; False when the file has none. Raises `UserError` as `put_mcp_server`."""
    found, stays = False, True

    def change(document: Document) -> bool:
        nonlocal found, stays
        from tomlkit.items import Table

        tables: object = document.get(family)
        if isinstance(tables, MutableMapping) and name in cast("Document", tables):
            found, others = True, cast("Document", tables)
            del others[name]
            # A table without a header of its own is only there for those in it.
            stays = len(others) > 0 or not (isinstance(others, Table) and others.is_super_table())
        return True

    def wanted(tree: dict[str, Any]) -> dict[str, Any]:
        if not found:
            return tree
        rest = {key: value for key, value in tree.items() if key != family}
        left = {key: value for key, value in as_object(tree[family]).items() if key != name}
        return {**rest, family: left} if stays else rest

    edit_file(file, (family, name), change=change, wanted=wanted)
    return found

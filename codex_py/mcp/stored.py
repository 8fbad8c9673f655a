"""The catalogues of servers on disk, by the hash of a server's configuration: a first request has its tools from here.

A file that is missing, damaged or of another version counts as none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.mcp.catalog import Catalog, catalog_from_record
from codex_py.mcp.servers import McpServer
from codex_py.protocol.encoding import as_object, encode_json
from codex_py.text.checked_file import load_checked, save_checked

_FORMAT: Final = b"codex-py mcp 2"
# 128 tools with 64 KiB of schema and 4 KiB of description each fit.
_MAX_BYTES: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 256
_DAMAGE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)


def load_catalog(home: Path, server: McpServer) -> Catalog | None:
    """What the server offered when it was last seen; None when it never was."""
    body = load_checked(_path(home, server), _FORMAT, max_bytes=_MAX_BYTES)
    try:
        return None if body is None else catalog_from_record(as_object(json.loads(body)))
    except _DAMAGE:
        return None


def save_catalog(home: Path, server: McpServer, catalog: Catalog) -> None:
    """Keep what the server offers now, 0600; what cannot be written is not kept."""
    path = _path(home, server)
    with suppress(OSError):
        _remove_oldest(path)
    save_checked(path, _FORMAT, encode_json(catalog.to_record()), max_bytes=_MAX_BYTES)


def forget_catalog(home: Path, server: McpServer) -> None:
    """Remove what is kept of a server."""
    with suppress(OSError):
        _path(home, server).unlink()


def _path(home: Path, server: McpServer) -> Path:
    return home / "cache" / "mcp" / f"{server.fingerprint[:32]}.json"


def _remove_oldest(path: Path) -> None:
    others = [entry for entry in path.parent.iterdir() if entry != path]
    if len(others) >= _MAX_FILES:
        others.sort(key=lambda entry: entry.lstat().st_mtime_ns)
        for entry in others[: len(others) - _MAX_FILES + 1]:
            entry.unlink(missing_ok=True)

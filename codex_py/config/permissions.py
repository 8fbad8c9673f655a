"""OpenSSH's rule for our files: what others can write may not make us run something."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from codex_py.config.keys import dotted

_RUNNING: Final = ("mcp_servers", "notify", "hooks")


def weak_permissions(file: Path) -> str | None:
    """What to mend when others can write the file or its folder, None when only the user (or root) can."""
    for path in (file.parent, file):
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_uid not in (os.getuid(), 0):
            return f"`{path}` belongs to somebody else: make it your own with `chown`"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"`{path}` can be written by others: run `chmod go-w {path}`"
    return None


def without_commands(tree: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The tree without the keys that can run something, and the names of those that were there."""
    remaining = {name: value for name, value in tree.items() if name not in _RUNNING}
    dropped = [name for name in tree if name in _RUNNING]
    providers = remaining.get("model_providers")
    if isinstance(providers, dict):
        table = cast("dict[str, Any]", providers)
        remaining["model_providers"] = {name: _without_auth(entry) for name, entry in table.items()}
        dropped += [
            dotted(("model_providers", name, "auth"))
            for name, entry in table.items()
            if isinstance(entry, dict) and "auth" in entry
        ]
    return remaining, dropped


def _without_auth(provider: Any) -> Any:
    if not isinstance(provider, dict):
        return provider
    return {name: value for name, value in cast("dict[str, Any]", provider).items() if name != "auth"}

"""Reads configuration files safely: regular files of limited size, and carefully if others can write them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.config.keys import dotted
from codex_py.errors import ConfigError
from codex_py.protocol.encoding import as_object

MAX_FILE_BYTES: Final = 1 << 20
_CHUNK: Final = 1 << 16
_BOM: Final = b"\xef\xbb\xbf"


def read_text(path: Path, *, limit: int = MAX_FILE_BYTES) -> str | None:
    """The text of a configuration file, None when there is none.

    Raises `UserError` for anything but a readable regular file of UTF-8 text within `limit` bytes.
    """
    try:
        raw = read_regular(path, limit + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        if os.path.islink(path):  # noqa: PTH114
            # Whoever made the link may rely on the settings behind it.
            raise ConfigError(f"cannot read `{path}`: it is a link to a file that does not exist") from error
        return None
    except OSError as error:
        raise ConfigError(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from error
    if len(raw) > limit:
        raise ConfigError(f"cannot read `{path}`: it is larger than {limit // 1024} KiB")
    try:
        return raw.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        where = "it is UTF-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else f"line {line} is not UTF-8"
        raise ConfigError(f"cannot read `{path}`: {where}", hint="save it as UTF-8") from error


def read_regular(path: Path, limit: int, *, follow: bool = True) -> bytes:
    """Up to `limit` bytes of a regular file; raise `OSError` for anything else, and for a link unless `follow`."""
    # Without O_NONBLOCK a named pipe would hold the program up for ever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(0, "it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file", str(path))
        raw = b""
        while len(raw) < limit and (chunk := os.read(descriptor, min(_CHUNK, limit - len(raw)))):
            raw += chunk
        return raw
    finally:
        os.close(descriptor)


_RUNNING: Final = ("mcp_servers", "notify", "hooks", "plugins")


def weak_permissions(file: Path) -> str | None:
    """How to fix the permissions when others can write the file or its directory; None when they cannot."""
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
    """The tree without the keys that can run something or trust a project, and the names of those that were there."""
    remaining = {name: value for name, value in tree.items() if name not in _RUNNING}
    dropped = [name for name in tree if name in _RUNNING]
    providers = as_object(remaining.get("model_providers"))
    remaining |= (
        {"model_providers": {name: _without_auth(entry) for name, entry in providers.items()}} if providers else {}
    )
    dropped += [
        dotted(("model_providers", name, "auth")) for name, entry in providers.items() if "auth" in as_object(entry)
    ]
    projects = as_object(remaining.get("projects"))
    trusted = [name for name, entry in projects.items() if as_object(entry).get("trust_level") == "trusted"]
    remaining |= (
        {"projects": {name: entry for name, entry in projects.items() if name not in trusted}} if trusted else {}
    )
    return remaining, dropped + [dotted(("projects", name)) for name in trusted]


def _without_auth(provider: Any) -> Any:
    fields = as_object(provider)
    return {name: value for name, value in fields.items() if name != "auth"} if fields else provider

"""Records the files of an installed plugin, to detect later changes at every load.

A record has a line with a stamp of every file's size, mode and times, and one with their digests. While the stamp
is the same, no file is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import make_private_dir
from codex_py.protocol.encoding import as_object, decode_json, encode_json
from codex_py.replace_file import replace_file
from codex_py.text.display import counted

_RECORDS: Final = Path("plugins", "installed")
_MAX_FILES: Final = 20_000
_MAX_DEPTH: Final = 64
_MAX_RECORD_BYTES: Final = 16 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024


def change_in(home: Path, plugin_id: str, root: Path) -> str | None:
    """The first change in an installed plugin's files; None when nothing has changed.

    A plugin without a record, which an earlier version or another program has installed, gets one now.
    """
    path = _path(home, plugin_id)
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            head = file.readline(1000).decode(errors="replace").split(" ")
            if head[0] == _version(root) and head[-1].rstrip("\n") == _stamp(root):
                return None
            body = file.read(_MAX_RECORD_BYTES)
    except FileNotFoundError:
        record_plugin(home, plugin_id, root)
        return None
    except OSError as error:
        return f"its record cannot be read: {(error.strerror or str(error)).lower()}"
    if head[0] != _version(root):
        return f"it was installed as version `{head[0]}`, and now there is `{root.name}`"
    try:
        recorded = as_object(decode_json(body))
        now = _digests(root)
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be compared: {error}"
    changes = sorted(name for name in {*recorded, *now} if recorded.get(name) != now.get(name))
    if changes:
        return _in_words(changes[0], recorded, now, more=len(changes) - 1)
    record_plugin(home, plugin_id, root)
    return None


def record_plugin(home: Path, plugin_id: str, root: Path) -> None:
    """Record a plugin's files as they are now. If that fails, they are compared again the next time."""
    path = _path(home, plugin_id)
    with suppress(OSError, ValueError):
        # Before the digests: what changes meanwhile is found.
        stamp = _stamp(root)
        body = encode_json(_digests(root))
        make_private_dir(path.parent)
        replace_file(path, f"{_version(root)} {stamp}\n".encode() + body)


def forget_record(home: Path, plugin_id: str) -> None:
    """Remove the record of a plugin that is not there any more."""
    with suppress(OSError):
        _path(home, plugin_id).unlink()


def _path(home: Path, plugin_id: str) -> Path:
    return home / _RECORDS / plugin_id


def _version(root: Path) -> str:
    return root.name.replace(" ", "_").replace("\n", "_")


def _in_words(name: str, recorded: Mapping[str, object], now: Mapping[str, str], *, more: int) -> str:
    verb = "is new" if name not in recorded else "is gone" if name not in now else "has changed"
    others = f", and {counted(more, 'more file')}" if more else ""
    return f"`{name}` {verb} since it was installed{others}"


def _stamp(root: Path) -> str:
    """Differs when a file may have changed; reads none of them."""
    digest = hashlib.sha256()
    for name, status in sorted(_files(root)):
        digest.update(os.fsencode(name))
        times = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        digest.update(f"\0{times}\n".encode())
    return digest.hexdigest()


def _digests(root: Path) -> dict[str, str]:
    """The mode and the digest of every file, by its path inside."""
    found: dict[str, str] = {}
    for name, status in _files(root):
        path = root / name
        mode = status.st_mode
        if stat.S_ISLNK(mode):
            content = hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        elif stat.S_ISREG(mode):
            content = _digest_of(path)
        else:
            content = "not a file"
        found[os.fsencode(name).decode("utf-8", "backslashreplace")] = f"{mode:o} {content}"
    return found


def _digest_of(path: Path) -> str:
    digest = hashlib.sha256()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Every file below a directory, with its relative path. Raises `OSError` for too many files."""
    waiting = [("", 0)]
    count = 0
    while waiting:
        inner, depth = waiting.pop()
        with os.scandir(root / inner) as entries:
            for entry in entries:
                count += 1
                if count > _MAX_FILES or depth > _MAX_DEPTH:
                    raise OSError("it has more files than a plugin may have")
                name = f"{inner}/{entry.name}".lstrip("/")
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append((name, depth + 1))
                else:
                    yield name, status

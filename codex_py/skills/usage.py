"""The ledger of used skills: one line of JSON a use in a file of the user's own; nothing of it leaves the machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import as_object, decode_json, encode_json, timestamp
from codex_py.protocol.events import SkillSuggested, SkillUsed
from codex_py.text.files import read_lines

LEDGER: Final = "skills-usage.jsonl"
# What was in the ledger before it had reached its size; the one before that is gone.
OLDER_LEDGER: Final = "skills-usage.1.jsonl"

_USES: Final = ("explicit", "read", "script")
_MAX_BYTES: Final = 1024 * 1024
_MAX_LINE: Final = 16 * 1024
_WRITE: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class SkillUsage(NamedTuple):
    """How often the skill at a path was mentioned or picked, and how often a command read it or ran its scripts.

    `name`, `scope` and `last_used`, a UTC time stamp, are those of the last use.
    """

    path: str
    name: str
    scope: str
    explicit: int
    implicit: int
    last_used: str


class LedgerUse(NamedTuple):
    """One use: the day it was on as `2026-01-31`, the project it was in, and whether the skill had been suggested."""

    path: str
    day: str
    project: str
    suggested: bool


def record_use(
    home: Path, use: SkillUsed, *, project: str = "", suggested: bool = False, now: float | None = None
) -> bool:
    """Append a use to the ledger of a `CODEX_HOME`; False when it could not be, which is never an error.

    The file is readable by the user alone. At 1 MiB it is set aside and a new one begun. `project` is where it was
    used, `suggested` says that the model had been pointed to the skill. `now` is in seconds since the epoch.
    """
    entry: dict[str, Any] = {"at": timestamp(now), "name": use.name, "scope": use.scope, "path": str(use.path)}
    entry |= {"kind": use.kind} | ({"project": project} if project else {}) | ({"suggested": True} if suggested else {})
    return _append(home, entry)


def record_suggestion(home: Path, skill: SkillSuggested, *, project: str = "", now: float | None = None) -> bool:
    """Append to the ledger that a skill was suggested; False when it could not be."""
    entry = {"at": timestamp(now), "name": skill.name, "scope": skill.scope, "path": str(skill.path)}
    return _append(home, entry | {"kind": "suggested"} | ({"project": project} if project else {}))


def _append(home: Path, entry: dict[str, Any]) -> bool:
    line = encode_json(entry) + b"\n"
    if len(line) > _MAX_LINE:
        return False
    try:
        make_private_dir(home)
        with _ledger(home, len(line)) as descriptor:
            return os.write(descriptor, line) == len(line)
    except OSError:
        return False


def read_usage(home: Path) -> tuple[SkillUsage, ...]:
    """The uses on record, by skill, the last used first. Lines that make no sense are skipped; no file, no uses."""
    found: dict[str, SkillUsage] = {}
    for name in (OLDER_LEDGER, LEDGER):
        for entry in _entries(home / name):
            path, use_type, at = entry.get("path"), entry.get("kind"), entry.get("at")
            if not (isinstance(path, str) and isinstance(at, str) and use_type in _USES):
                continue
            before = found.get(path)
            explicit, implicit = (before.explicit, before.implicit) if before else (0, 0)
            found[path] = SkillUsage(
                path,
                str(entry.get("name", "")),
                str(entry.get("scope", "")),
                explicit + (use_type == "explicit"),
                implicit + (use_type != "explicit"),
                max(at, before.last_used) if before else at,
            )
    return tuple(sorted(found.values(), key=lambda usage: (usage.last_used, usage.path), reverse=True))


def read_uses(home: Path) -> Iterator[LedgerUse]:
    """The uses on record one by one, the oldest first."""
    for name in (OLDER_LEDGER, LEDGER):
        for entry in _entries(home / name):
            path, at, project = entry.get("path"), entry.get("at"), entry.get("project")
            if isinstance(path, str) and isinstance(at, str) and entry.get("kind") in _USES:
                where = project if isinstance(project, str) else ""
                yield LedgerUse(path, at[:10], where, entry.get("suggested") is True)


@contextlib.contextmanager
def _ledger(home: Path, wanted: int) -> Generator[int]:
    """The ledger open for appending, a full one set aside before; raises `OSError`."""
    path = home / LEDGER
    descriptor = _open(path)
    try:
        if os.fstat(descriptor).st_size + wanted > _MAX_BYTES:
            _set_aside(descriptor, path)
            full, descriptor = descriptor, _open(path)
            os.close(full)
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    descriptor = open_private(path, _WRITE)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(f"not a regular file: `{path}`")


def _set_aside(descriptor: int, path: Path) -> None:
    """Rename the full ledger, unless another process does or has just done so; raises `OSError`."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    except OSError:
        # A file system without locks: at worst two processes rename, and some old uses are forgotten.
        pass
    if os.path.samestat(os.fstat(descriptor), path.stat()):
        path.replace(path.with_name(OLDER_LEDGER))


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    """The objects on the lines of a ledger; what cannot be read ends it."""
    left = 2 * _MAX_BYTES
    with contextlib.suppress(OSError), _reading(path) as stream:
        for line in read_lines(stream, limit=_MAX_LINE):
            left -= len(line)
            if left < 0:
                return
            with contextlib.suppress(ValueError):
                yield as_object(decode_json(line))


def _reading(path: Path) -> BinaryIO:
    descriptor = os.open(path, _READ)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(f"not a regular file: `{path}`")
